import type { Journal } from "./journal/journal.ts";
import type { AssignmentReader } from "./link/assignment-reader.ts";
import { fromPodState } from "./pods/stored-memory.ts";
import type { RecordedPod } from "./pods/supervisor-options.ts";

/** Returns all pods that the journal contains, including those that are no longer assigned. */
export function recordedPods(journal: Journal, reader: AssignmentReader): readonly RecordedPod[] {
  const uids = new Set([...journal.desired().keys(), ...journal.states().keys(), ...journal.damaged]);
  return [...uids].map((uid) => {
    const assignment = journal.desired().get(uid);
    const state = journal.state(uid);
    return {
      uid,
      damaged: journal.damaged.has(uid),
      ...(assignment && { pod: reader.read(assignment) }),
      ...(state && { memory: fromPodState(uid, state) }),
    };
  });
}
