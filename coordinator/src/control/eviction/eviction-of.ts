import type { NodeTaint, PodRecord } from "@forage/proto/forage/store/v1/store";
import { tolerates } from "@forage/scheduler";
import { taintsFrom, tolerationsOf } from "../../model/pod-rules.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import { NOT_READY_TAINT, UNREACHABLE_TAINT } from "../../state/node-taints.ts";

/** The time at which a pod has to leave its node, and the taint that requires it. */
export interface Eviction {
  /** The time in milliseconds since the epoch. */
  readonly atMs: number;
  readonly taint: NodeTaint;
}

/** The times for which pods without a toleration of their own tolerate a lost or broken node. Kubernetes: 300 s each. */
export interface DefaultTolerations {
  readonly unreachableMs: number;
  readonly notReadyMs: number;
}

/**
 * The defaults. Endpoints on a lost node are withdrawn at once, but its containers may still run: 30 s is enough for an
 * agent to restart or upgrade and to reconnect without an eviction.
 */
export const DEFAULT_TOLERATIONS: DefaultTolerations = { unreachableMs: 30_000, notReadyMs: 300_000 };

/**
 * Returns the eviction by Kubernetes' rule: at once if a NoExecute taint isn't tolerated, otherwise when the shortest
 * toleration_seconds of the matching tolerations has passed. Undefined: the pod may stay.
 */
export function evictionOf(
  pod: PodRecord,
  taints: readonly NodeTaint[],
  defaults: DefaultTolerations = DEFAULT_TOLERATIONS,
): Eviction | undefined {
  const evictions = taints.flatMap((taint) => {
    const waitMs =
      taint.effect === "NoExecute" ? toleratedMs(pod, taint, defaults) : Number.POSITIVE_INFINITY;
    if (waitMs === Number.POSITIVE_INFINITY) return [];
    const sinceMs = Math.max(toEpochMs(taint.addedAt) ?? 0, toEpochMs(pod.boundAt) ?? 0);
    return [{ atMs: sinceMs + waitMs, taint }];
  });
  return evictions.sort((a, b) => a.atMs - b.atMs)[0];
}

/**
 * Returns the milliseconds for which the first matching toleration tolerates the taint. In the API, 0 means that no time is
 * given, and negative values mean no time at all.
 */
function toleratedMs(pod: PodRecord, taint: NodeTaint, defaults: DefaultTolerations): number {
  const matching = pod.template?.podConfig?.tolerations.find((toleration) =>
    taintsFrom([taint]).some((it) => tolerates(tolerationsOf([toleration]), it)),
  );
  if (matching === undefined) {
    if (taint.key === UNREACHABLE_TAINT) return defaults.unreachableMs;
    return taint.key === NOT_READY_TAINT ? defaults.notReadyMs : 0;
  }
  const { tolerationSeconds } = matching;
  return tolerationSeconds === 0n ? Number.POSITIVE_INFINITY : Math.max(0, Number(tolerationSeconds) * 1000);
}
