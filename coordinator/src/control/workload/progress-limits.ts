export interface ProgressLimits {
  /** A rollout that has not got through by then has failed. */
  readonly deadlineMs: number;
  /** A pod that no node takes for so long fails its rollout. */
  readonly placementMs: number;
  /** How long a pod must have been ready to count as done, so that one that crashes at once doesn't. */
  readonly stableMs: number;
}
