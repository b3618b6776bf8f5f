export interface ProgressLimits {
  /** A rollout that has not got through by then has failed. */
  readonly deadlineMs: number;
  /** A pod that no node takes for so long fails its rollout. */
  readonly placementMs: number;
  /** The time for which a pod must have been ready to count as done. It excludes a pod that crashes at once. */
  readonly stableMs: number;
}
