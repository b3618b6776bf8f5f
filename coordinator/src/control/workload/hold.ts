/** The limit up to which a rollout may replace pods for now. */
export type Hold =
  | { readonly type: "none" }
  /** The workload is paused: lost pods are replaced with pods of the same revision, and nothing else changes. */
  | { readonly type: "paused" }
  /** The rollout has not begun, because dependencies are unmet. The previous pods continue. */
  | { readonly type: "held" }
  /** The rollout may create this many pods of the new revision. */
  | { readonly type: "canary"; readonly pods: number };
