/** The limit of the change to the present revision for now. */
export type Hold =
  | { readonly type: "none" }
  /** As far as it is: what is lost is replaced by the like of it. */
  | { readonly type: "paused" }
  /** The change has not begun, because a dependency is missing. The previous pods continue. */
  | { readonly type: "held" }
  /** The limit is this many new pods. */
  | { readonly type: "canary"; readonly pods: number };
