import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventLog } from "../../src/events/event-log.ts";
import type { EventInput } from "../../src/model/event.ts";

export function anEvent(fields: Partial<EventInput> = {}): EventInput {
  return {
    namespace: "shop",
    kind: "pod",
    name: "web-1",
    type: "Normal",
    reason: "Started",
    message: "container main has started",
    ...fields,
  };
}

/** Returns all kept events, oldest first. */
export async function everyEvent(log: EventLog): Promise<readonly EventRecord[]> {
  return (await log.read(0, 1_000_000)).events;
}

/** Formats an event as `7 pod/web-1 Started ×2: container main has started`. */
export function eventLine({ sequence, kind, name, reason, message, count }: EventRecord): string {
  return `${sequence} ${kind}/${name} ${reason}${count > 1 ? ` ×${count}` : ""}: ${message}`;
}
