import type { Log } from "@forage/common/log";
import { type FaultSubject, ObjectFaults } from "../faults/object-faults.ts";
import type { EventRecorder } from "../model/event.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import { eventsOf } from "./from-changes.ts";

/** Records the events for changes of the cluster view. Returns a function that stops this. */
export function recordChanges(state: ClusterView, events: EventRecorder, log?: Log): () => void {
  const faults = new ObjectFaults({ loop: "events", log });
  return state.subscribe((changes) => {
    for (const change of changes) {
      const recorded = faults.attempt(subjectOf(change), () => eventsOf(change));
      for (const event of recorded ?? []) events.record(event);
    }
  });
}

function subjectOf(change: Change): FaultSubject {
  const entry = change.after ?? change.before;
  const kind = change.type;
  if (entry === undefined) return { kind, namespace: "", name: "" };
  if ("name" in entry && typeof entry.name === "string") return { kind, namespace: "", name: entry.name };
  if ("key" in entry) return { kind, namespace: "", name: entry.key };
  return { kind, namespace: "", name: "id" in entry ? entry.id : "" };
}
