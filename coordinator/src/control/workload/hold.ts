/** How far the change to the present revision may go for now. */
export type Hold =
  | { readonly type: "none" }
  /** As far as it is: what is lost is replaced by the like of it. */
  | { readonly type: "paused" }
  /** That many new pods. */
  | { readonly type: "canary"; readonly pods: number };
