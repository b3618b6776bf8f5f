export interface ProgressLimits {
  /** The progress deadline in milliseconds: a rollout that makes no progress for this time fails. */
  readonly deadlineMs: number;
  /** The time for which a pod may be unschedulable before its rollout fails. */
  readonly placementMs: number;
  /** The time for which a pod must have been ready to count as available. It excludes pods that crash at once. */
  readonly stableMs: number;
}
