import { resourceKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { RolloutEntry } from "../../state/entries.ts";
import { compareRollouts } from "../../state/rollout-order.ts";
import { resourceView } from "./views.ts";

/**
 * Returns the current state of a resource whose rollout has ended. The message also contains the state in which the rollout
 * ended.
 */
export function currentRolloutStatus(
  { record }: RolloutEntry,
  { kind, name }: { readonly kind: string; readonly name: string },
  state: ClusterView,
  nowMs: number,
): string {
  const entry = state.resource(resourceKey(record.namespace, kind, name));
  if (entry === undefined) return "no longer exists";
  if (entry.record.deleting) return "is being deleted";
  const newest = state.rolloutsOf(record.namespace, kind, name).at(-1);
  if (newest !== undefined && compareRollouts(newest.record, record) > 0)
    return `changed by rollout ${newest.id}`;
  const { readyReplicas, readyEndpoints, replicas, job, message } = resourceView(state, entry, nowMs);
  if (kind === "service") return `${readyEndpoints} endpoints ready${message === "" ? "" : `: ${message}`}`;
  if (kind === "container_service") return `${readyReplicas}/${replicas} ready`;
  return job === undefined ? "" : job.condition || "running";
}
