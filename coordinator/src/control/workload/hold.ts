/** The limit of the change to the present revision for now. */
export type Hold =
  | { readonly type: "none" }
  /** As far as it is: what is lost is replaced by the like of it. */
  | { readonly type: "paused" }
  /** Not begun, since something that it depends on isn't there: what was before goes on. */
  | { readonly type: "held" }
  /** The limit is this many new pods. */
  | { readonly type: "canary"; readonly pods: number };
