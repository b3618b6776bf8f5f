/** Something that was decided or that happened, and why. */
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
  /** `namespace/kind/name` of the workload of a pod. */
  readonly workload?: string;
  readonly node?: string;
  readonly rolloutId?: string;
}

/** Takes events from whatever decides. Never blocks and never fails: what is over its limits is counted and dropped. */
export interface EventRecorder {
  record(event: EventInput): void;
}
