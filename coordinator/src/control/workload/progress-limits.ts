export interface ProgressLimits {
  /** The progress deadline. A rollout without progress until then has failed. */
  readonly deadlineMs: number;
  /** A pod that no node takes for so long fails its rollout. */
  readonly placementMs: number;
  /** The time for which a pod must have been ready to count as done. It excludes a pod that crashes at once. */
  readonly stableMs: number;
}
