import { KEPT_PODS_MAX } from "../../coordinator/src/model/kept-pod.ts";
import { resourceKey, workloadStatusKey } from "../../coordinator/src/model/keys.ts";
import { toEpochMs } from "../../coordinator/src/model/timestamp.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";

/** Returns a description of a failed pod that is kept without reason; `undefined` if there is none. */
export function whatIsKeptInVain(state: ClusterView): string | undefined {
  const counts = new Map<string, number>();
  for (const { record } of state.keptPods.all()) {
    const { pod } = record;
    if (pod === undefined) return "a kept pod has no record";
    const { namespace, workloadKind: kind, workloadName: name } = pod;
    const key = resourceKey(namespace, kind, name);
    if (state.resource(key) === undefined) return `pod ${pod.name} is kept, and ${key} is gone`;
    const status = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
    const attempt = status?.$case === "containerService" ? status.value.attempt : undefined;
    // The two times are compared for equality only: the wall clock may have been set back after the attempt began.
    if (toEpochMs(attempt?.startedAt) !== toEpochMs(record.attemptStartedAt))
      return `pod ${pod.name} is kept, and the next rollout of ${key} has begun`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const many = [...counts].find(([, count]) => count > KEPT_PODS_MAX);
  return many && `${many[1]} failed pods of ${many[0]} are kept`;
}
