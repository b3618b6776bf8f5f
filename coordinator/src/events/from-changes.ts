import type { EventInput } from "../model/event.ts";
import type { Change, ObjectEntry, ResourceEntry } from "../state/entries.ts";
import { nodeEvents } from "./from-nodes.ts";
import { podEvents } from "./from-pods.ts";

/**
 * Returns the events for a change of the cluster view. Controllers record events that need more
 * knowledge: why they scale, roll back or wait.
 */
export function eventsOf(change: Change): EventInput[] {
  switch (change.type) {
    case "pod":
      return podEvents(change.before, change.after);
    case "node":
      return nodeEvents(change.before, change.after);
    case "resource":
      return resourceEvents(change.before, change.after);
    case "object":
      return objectEvents(change.before, change.after);
    // The code that writes these records also records their events.
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
  // The history of a cron job includes the events of its runs.
  const workload = owner && { workload: `${namespace}/${owner.kind}/${owner.name}` };
  const oneEvent = (reason: string, message: string): EventInput[] => [
    { namespace, kind, name, type: "Normal", reason, message, rolloutId, ...workload },
  ];
  const by = owner === undefined ? byWhom(changedBy) : ` by ${owner.kind}/${owner.name}`;
  const inRollout = rolloutId === "" ? "" : ` in rollout ${rolloutId}`;
  if (after === undefined) return oneEvent("Deleted", "deleted completely");
  if (before === undefined) return oneEvent("Created", `created${by}${inRollout}`);
  if (after.record.deleting && !before.record.deleting)
    return oneEvent("Deleting", `deletion requested${byWhom(deletedBy)}`);
  if (before.record.specHash !== after.record.specHash || before.record.rolloutId !== rolloutId)
    return oneEvent("Changed", `changed${by}${inRollout}`);
  // Compares the applied workload, which a rollback does not change, unlike the effective one.
  if (before.applied?.templateHash !== after.applied?.templateHash)
    return oneEvent("Changed", "the contents of a secret or config map that its pods use have changed");
  return [];
}

function byWhom(name: string): string {
  return name === "" ? "" : ` by ${name}`;
}

function objectEvents(before: ObjectEntry | undefined, after: ObjectEntry | undefined): EventInput[] {
  const entry = after ?? before;
  if (entry === undefined) return [];
  const oneEvent = (reason: string, message: string): EventInput[] => [
    { ...entry.name, type: "Normal", reason, message },
  ];
  if (after === undefined) return oneEvent("Deleted", "deleted");
  if (before === undefined) return oneEvent("Created", "created");
  const nodeOf = ({ record }: ObjectEntry): string =>
    record.spec?.$case === "claim" ? record.spec.value.node : "";
  const node = nodeOf(after);
  if (node !== "" && nodeOf(before) === "")
    return oneEvent("Bound", `its data is stored on node ${node} from now on`).map((event) => ({
      ...event,
      node,
    }));
  return before.record.generation === after.record.generation ? [] : oneEvent("Changed", "changed");
}
