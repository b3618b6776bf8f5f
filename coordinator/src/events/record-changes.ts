import type { State } from "../state/state.ts";
import type { EventRecorder } from "./event.ts";
import { eventsOf } from "./from-changes.ts";

/** Tells the recorder what changes in the view. Returns how to stop. */
export function recordChanges(state: State, events: EventRecorder): () => void {
  return state.subscribe((changes) => {
    for (const change of changes) for (const event of eventsOf(change)) events.record(event);
  });
}
