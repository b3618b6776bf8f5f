import { createHmac } from "node:crypto";
import { Event } from "@forage/proto/forage/operator/v1/operator";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { NotificationSettings } from "./settings.ts";

/** The position in the events up to which a receiver has received everything. */
export interface Cursor {
  readonly sequence: number;
  /**
   * The time of the newest event up to that position, since the epoch. Repetitions of earlier
   * events are not sent again.
   */
  readonly coveredMs: number;
}

/** The most events in one message. Receivers that display each event do not handle more at once. */
export const MAX_EVENTS_PER_MESSAGE = 20;

/** Returns the events to send: those that match the filter, each at its first occurrence only. */
export function eventsToSend(
  events: readonly EventRecord[],
  { types, reasons, kinds, namespaces }: NotificationSettings,
  { coveredMs }: Cursor,
): EventRecord[] {
  const allows = (list: readonly string[], value: string): boolean =>
    list.length === 0 || list.includes(value);
  return events.filter((event) => {
    const isRepetition = event.count > 1 && (toEpochMs(event.firstAt) ?? 0) <= coveredMs;
    return (
      !isRepetition &&
      allows(types, event.type) &&
      allows(reasons, event.reason) &&
      allows(kinds, event.kind) &&
      allows(namespaces, event.namespace)
    );
  });
}

export interface Message {
  /**
   * The id of the message, the same for each delivery attempt, so that a receiver can recognize
   * repetitions.
   */
  readonly id: string;
  readonly body: string;
}

/**
 * Returns the message with these events. `missed` means that earlier events are lost, because they
 * were removed before they were sent.
 */
export function messageOf(
  { name }: Pick<NotificationSettings, "name">,
  {
    events,
    cluster,
    missed,
  }: { readonly events: readonly EventRecord[]; readonly cluster: string; readonly missed: boolean },
): Message {
  const last = events.at(-1)?.sequence ?? 0n;
  const body = JSON.stringify({
    notification: name,
    cluster,
    missed,
    events: events.map(toJson),
  });
  return { id: `${name}-${last}`, body };
}

/**
 * Converts an event to JSON. An event with an invalid date is sent without dates; it must not block
 * later ones.
 */
function toJson(event: EventRecord): unknown {
  try {
    return Event.toJSON(event);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return Event.toJSON({ ...event, firstAt: undefined, lastAt: undefined });
  }
}

/**
 * Returns a message that only tests whether the receiver can be reached and accepts the signature.
 */
export function testMessage(
  settings: Pick<NotificationSettings, "name">,
  { cluster, nowMs }: { readonly cluster: string; readonly nowMs: number },
): Message {
  const at = toTimestamp(nowMs);
  const event = EventRecord.fromPartial({
    ...{ kind: "coordinator", name: cluster, type: "Normal", reason: "NotificationTest", count: 1 },
    ...{ message: "an operator tests this receiver", firstAt: at, lastAt: at },
  });
  const { body } = messageOf(settings, { events: [event], cluster, missed: false });
  return { id: `${settings.name}-test-${nowMs}`, body };
}

/**
 * Returns the value of the header `Forage-Signature`: the time in seconds, and the HMAC-SHA256 of
 * time, a dot and the body.
 */
export function signatureOf(body: string, key: Uint8Array, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1_000);
  const mac = createHmac("sha256", key).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${mac}`;
}
