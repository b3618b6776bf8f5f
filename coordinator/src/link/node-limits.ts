import type { Config } from "../config.ts";
import type { DefaultTolerations } from "../control/eviction/eviction-of.ts";
import type { RebalanceSchedule } from "../control/rebalance/controller.ts";
import { defaultLivenessLimits, HEARTBEATS_OF_SILENCE, type LivenessLimits } from "./liveness-limits.ts";

/** The configured times after which nodes become Unreachable and their pods are evicted. */
export interface NodeLimits {
  readonly liveness: LivenessLimits;
  readonly tolerations: DefaultTolerations;
  /** The time that nodes have to return after a mass loss before they count as lost. */
  readonly recoveryMs: number;
}

export function nodeLimits({
  nodes,
  heartbeatIntervalSeconds,
}: Pick<Config, "nodes" | "heartbeatIntervalSeconds">): NodeLimits {
  const { unreachableMs } = defaultLivenessLimits(heartbeatIntervalSeconds * 1000);
  return {
    liveness: {
      unreachableMs: nodes.unreachableSeconds === undefined ? unreachableMs : nodes.unreachableSeconds * 1000,
      startGraceMs: nodes.startGraceSeconds * 1000,
      ...(nodes.unreachableSeconds !== undefined && {
        longestHeartbeatMs: (nodes.unreachableSeconds * 1000) / HEARTBEATS_OF_SILENCE,
      }),
    },
    tolerations: {
      unreachableMs: nodes.unreachableTolerationSeconds * 1000,
      notReadyMs: nodes.notReadyTolerationSeconds * 1000,
    },
    recoveryMs: nodes.recoveryGraceSeconds * 1000,
  };
}

/** Returns the schedule of rebalancing. Undefined: pods are moved on request only. */
export function rebalanceSchedule({ rebalance }: Pick<Config, "rebalance">): RebalanceSchedule | undefined {
  if (rebalance === undefined) return undefined;
  const { intervalSeconds, maxMoves, goal } = rebalance;
  return {
    intervalMs: intervalSeconds * 1000,
    maxMoves,
    goal: goal === "pack" ? "empty-nodes" : "restore-spread",
  };
}
