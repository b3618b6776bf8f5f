import type { NodeTaint, PodRecord } from "@forage/proto/forage/store/v1/store";
import { tolerates } from "@forage/scheduler";
import { taintsFrom, tolerationsOf } from "../../model/pod-rules.ts";
import { toEpochMs } from "../../model/timestamp.ts";

/** When a pod has to leave its node, and the taint that sends it away. */
export interface Eviction {
  /** Since the epoch. */
  readonly atMs: number;
  readonly taint: NodeTaint;
}

/**
 * Kubernetes' rule: at once where a NoExecute taint isn't tolerated, else when the shortest toleration_seconds of those that
 * tolerate one is over. Undefined: the pod may stay.
 */
export function evictionOf(pod: PodRecord, taints: readonly NodeTaint[]): Eviction | undefined {
  const evictions = taints.flatMap((taint) => {
    const seconds = taint.effect === "NoExecute" ? toleratedSeconds(pod, taint) : Number.POSITIVE_INFINITY;
    if (seconds === Number.POSITIVE_INFINITY) return [];
    const sinceMs = Math.max(toEpochMs(taint.addedAt) ?? 0, toEpochMs(pod.boundAt) ?? 0);
    return [{ atMs: sinceMs + seconds * 1000, taint }];
  });
  return evictions.sort((a, b) => a.atMs - b.atMs)[0];
}

/** By the first toleration that matches. 0 in the contract is none given, and less than 0 is at once. */
function toleratedSeconds(pod: PodRecord, taint: NodeTaint): number {
  const matching = pod.template?.podConfig?.tolerations.find((toleration) =>
    taintsFrom([taint]).some((it) => tolerates(tolerationsOf([toleration]), it)),
  );
  if (matching === undefined) return 0;
  const { tolerationSeconds } = matching;
  return tolerationSeconds === 0n ? Number.POSITIVE_INFINITY : Math.max(0, Number(tolerationSeconds));
}
