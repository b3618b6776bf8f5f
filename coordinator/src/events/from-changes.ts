import type { EventInput } from "../model/event.ts";
import type { Change, ObjectEntry, ResourceEntry } from "../state/entries.ts";
import { nodeEvents } from "./from-nodes.ts";
import { podEvents } from "./from-pods.ts";

/**
 * Returns the events of a change of the view. Pure. Controllers themselves record what only they know: why they scale, roll back
 * or wait.
 */
export function eventsOf(change: Change): EventInput[] {
  switch (change.kind) {
    case "pod":
      return podEvents(change.before, change.after);
    case "node":
      return nodeEvents(change.before, change.after);
    case "resource":
      return resourceEvents(change.before, change.after);
    case "object":
      return objectEvents(change.before, change.after);
    // Their writers record the events.
    case "rollout":
    case "kept-pod":
    case "revision":
    case "workload-status":
    case "scale":
    case "service-address":
    case "api-token":
    case "namespace":
      return [];
    default:
      return change satisfies never;
  }
}

function resourceEvents(before: ResourceEntry | undefined, after: ResourceEntry | undefined): EventInput[] {
  const entry = after ?? before;
  if (entry === undefined) return [];
  const { namespace, kind, name, rolloutId, owner, changedBy, deletedBy } = entry.record;
  // A cron job's history includes the events of its runs.
  const workload = owner && { workload: `${namespace}/${owner.kind}/${owner.name}` };
  const told = (reason: string, message: string): EventInput[] => [
    { namespace, kind, name, type: "Normal", reason, message, rolloutId, ...workload },
  ];
  const by = owner === undefined ? byWhom(changedBy) : ` by ${owner.kind}/${owner.name}`;
  const inRollout = rolloutId === "" ? "" : ` in rollout ${rolloutId}`;
  if (after === undefined) return told("Deleted", "deleted; nothing of it is left");
  if (before === undefined) return told("Created", `created${by}${inRollout}`);
  if (after.record.deleting && !before.record.deleting)
    return told("Deleting", `deletion requested${byWhom(deletedBy)}`);
  if (before.record.specHash !== after.record.specHash || before.record.rolloutId !== rolloutId)
    return told("Changed", `changed${by}${inRollout}`);
  // Compares the applied workload. A rollback changes the effective one, and the applied one stays.
  if (before.wanted?.templateHash !== after.wanted?.templateHash)
    return told("Changed", "the contents of a secret or config map that its pods take have changed");
  return [];
}

function byWhom(name: string): string {
  return name === "" ? "" : ` by ${name}`;
}

function objectEvents(before: ObjectEntry | undefined, after: ObjectEntry | undefined): EventInput[] {
  const entry = after ?? before;
  if (entry === undefined) return [];
  const told = (reason: string, message: string): EventInput[] => [
    { ...entry.name, type: "Normal", reason, message },
  ];
  if (after === undefined) return told("Deleted", "deleted");
  if (before === undefined) return told("Created", "created");
  const nodeOf = ({ record }: ObjectEntry): string =>
    record.spec?.$case === "claim" ? record.spec.value.node : "";
  const node = nodeOf(after);
  if (node !== "" && nodeOf(before) === "")
    return told("Bound", `its data lies on node ${node} from now on`).map((event) => ({ ...event, node }));
  return before.record.generation === after.record.generation ? [] : told("Changed", "changed");
}
