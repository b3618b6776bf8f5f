import type { Event, EventFilter } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";

/** The number of events in the output of `describe`. */
const LAST_EVENTS = 10;

export function eventFilter(fields: Partial<EventFilter> = {}): EventFilter {
  return { kind: "", name: "", type: "", reason: "", since: undefined, ...fields };
}

/** Returns the last events of an object, oldest first; empty if the caller may not read them. */
export async function eventsAbout(
  coordinator: Coordinator,
  namespace: string,
  { kind, name }: { readonly kind: string; readonly name: string },
): Promise<readonly Event[]> {
  try {
    const filter = eventFilter({ kind, name });
    const { events } = await coordinator.call(operator.listEvents, {
      namespace,
      filter,
      after: 0n,
      limit: LAST_EVENTS,
    });
    return events;
  } catch (error) {
    // The description is useful even without events.
    const refused = error instanceof CallError && REFUSALS.has(error.status);
    if (refused) return [];
    throw error;
  }
}

const REFUSALS: ReadonlySet<status> = new Set([status.UNIMPLEMENTED, status.PERMISSION_DENIED]);
