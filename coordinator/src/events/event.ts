/**
 * Something that was decided or that happened, and why. What shows in the view's changes (pods that are placed, start, crash, stop;
 * nodes that come, go and are cordoned; resources that are applied and deleted) is told by `from-changes` for all.
 */
export interface EventInput {
  /** Empty for events of nodes and of the cluster. */
  readonly namespace: string;
  /** What it is about: "pod", "node", or a kind of ForageResource. */
  readonly kind: string;
  readonly name: string;
  readonly type: "Normal" | "Warning";
  /** One word in CamelCase: "Scheduled", "RolledBack", "ScaledUp". */
  readonly reason: string;
  /** A sentence that says what and why. */
  readonly message: string;
  /** `namespace/kind/name` of the workload of a pod, or of what made a resource: who asks for that gets this event, too. */
  readonly workload?: string;
  readonly node?: string;
  readonly rolloutId?: string;
}

/** Takes events from whatever decides. Never blocks and never fails: what is over its limits is counted and dropped. */
export interface EventRecorder {
  record(event: EventInput): void;
}
