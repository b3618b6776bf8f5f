import type { Log } from "@forage/common/log";
import { type FaultSubject, ObjectFaults } from "../faults/object-faults.ts";
import type { EventRecorder } from "../model/event.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import { eventsOf } from "./from-changes.ts";

/** Records the events of the view's changes. Returns a function that stops it. */
export function recordChanges(state: ClusterView, events: EventRecorder, log?: Log): () => void {
  const faults = new ObjectFaults({ loop: "events", log });
  return state.subscribe((changes) => {
    for (const change of changes) {
      const told = faults.attempt(subjectOf(change), () => eventsOf(change));
      for (const event of told ?? []) events.record(event);
    }
  });
}

function subjectOf(change: Change): FaultSubject {
  const entry = change.after ?? change.before;
  const kind = change.kind;
  if (entry === undefined) return { kind, namespace: "", name: "" };
  if ("name" in entry && typeof entry.name === "string") return { kind, namespace: "", name: entry.name };
  if ("key" in entry) return { kind, namespace: "", name: entry.key };
  return { kind, namespace: "", name: "id" in entry ? entry.id : "" };
}
