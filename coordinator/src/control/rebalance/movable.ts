import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { tieOf } from "../../state/tied-pod.ts";
import { updateLimits } from "../workload/update-limits.ts";

/** A pod and its workload, to decide whether the pod may be moved. */
export interface Movable {
  readonly pod: PodEntry;
  readonly resource: ResourceEntry | undefined;
  /** All pods of the workload. */
  readonly siblings: readonly PodEntry[];
  readonly isReady: (pod: PodEntry) => boolean;
}

/** Returns the reason why the pod is not moved. Undefined: it may be moved. Pure. */
export function whyNotMoved({ pod, resource }: Movable): string | undefined {
  const workload = resource?.workload;
  if (resource === undefined || workload === undefined) return "only pods of container services are moved";
  if (resource.record.deleting) return "its workload is being deleted";
  if (updateLimits(workload.strategy, workload.replicas).type === "Recreate")
    return "its workload has the update strategy Recreate, so no replacement may run beside it";
  if (pod.record.stoppingSince !== undefined) return "it is stopping";
  if (pod.record.drainingSince !== undefined) return "it is leaving its node already";
  return tieOf(pod);
}

/** Reports whether all replicas are ready and have the same revision. Pods of a workload that isn't settled are not moved. Pure. */
export function isSettled({ resource, siblings, isReady }: Movable): boolean {
  const workload = resource?.workload;
  if (workload === undefined) return false;
  const active = siblings.filter(({ record }) => record.stoppingSince === undefined);
  return (
    active.length === workload.replicas &&
    active.every((it) => workload.currentHashes.has(it.record.templateHash) && isReady(it))
  );
}
