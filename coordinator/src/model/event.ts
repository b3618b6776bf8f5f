/**
 * A decision or an incident, with its reason. `from-changes` records for everyone what shows in the view's changes: pods that are
 * placed, start, crash and stop; nodes that join, leave and are cordoned; resources that are applied and deleted.
 */
export interface EventInput {
  /** Empty for events of nodes and of the cluster. */
  readonly namespace: string;
  /** The kind of the event's object: "pod", "node", or a kind of ForageResource. */
  readonly kind: string;
  readonly name: string;
  readonly type: "Normal" | "Warning";
  /** One word in CamelCase: "Scheduled", "RolledBack", "ScaledUp". */
  readonly reason: string;
  /** A sentence that says what and why. */
  readonly message: string;
  /**
   * The key `namespace/kind/name` of the pod's workload, or of the resource's owner. Queries for that workload return this event,
   * too.
   */
  readonly workload?: string;
  readonly node?: string;
  readonly rolloutId?: string;
}

/** Takes events from whatever decides. Never blocks and never fails: what is over its limits is counted and dropped. */
export interface EventRecorder {
  record(event: EventInput): void;
}
