import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState } from "@forage/proto/forage/store/v1/store";
import type { Change } from "../../state/entries.ts";
import type { WorkloadInput } from "./workload-input.ts";

/**
 * Reports whether the workload's last rollout has succeeded, exactly its pods exist, and none of them is marked to leave
 * its node. Then `planWorkload` and `addDrainStops` return no steps, whatever the readiness of the pods.
 */
export function isComplete({ resource, held, pods, status }: WorkloadInput): boolean {
  const { workload, applied, record } = resource ?? {};
  if (workload === undefined || applied === undefined || record?.deleting || held) return false;
  if (status?.attempt?.state !== AttemptState.SUCCEEDED || pods.length !== workload.replicas) return false;
  return pods.every(
    (pod) =>
      pod.record.stoppingSince === undefined &&
      pod.record.drainingSince === undefined &&
      workload.currentHashes.has(pod.record.templateHash),
  );
}

/** Reports whether only the status of a pod has changed, and it has neither ended nor been removed by its node. */
export function staysInPlace({ before, after }: Change & { readonly type: "pod" }): boolean {
  if (before === undefined || before.record !== after?.record) return false;
  const phase = after.status?.phase ?? PodPhase.PENDING;
  return phase === PodPhase.PENDING || phase === PodPhase.RUNNING;
}
