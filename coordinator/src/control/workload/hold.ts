/** The limit of the change to the present revision for now. */
export type Hold =
  | { readonly type: "none" }
  /** The workload is paused: pods that are lost are replaced by equal ones, and nothing else changes. */
  | { readonly type: "paused" }
  /** The change has not begun, because a dependency is missing. The previous pods continue. */
  | { readonly type: "held" }
  /** The limit is this many new pods. */
  | { readonly type: "canary"; readonly pods: number };
