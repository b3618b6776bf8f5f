import type { Config } from "../../config.ts";
import type { ProgressLimits } from "../workload/progress-limits.ts";

/** Returns the limits of rollouts from the configuration. */
export function rolloutLimits({ rollout }: Pick<Config, "rollout">): ProgressLimits {
  const { progressDeadlineSeconds, placementDeadlineSeconds, stableSeconds } = rollout;
  return {
    deadlineMs: progressDeadlineSeconds * 1000,
    placementMs: placementDeadlineSeconds * 1000,
    stableMs: stableSeconds * 1000,
  };
}
