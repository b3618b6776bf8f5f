/**
 * A decision or an incident, with its reason. Events that follow from changes of the view (pods that are placed, start,
 * crash and stop; nodes that join, leave and are cordoned; resources that are applied and deleted) are recorded by
 * `from-changes`.
 */
export interface EventInput {
  /** The namespace. Empty for events of nodes and of the cluster. */
  readonly namespace: string;
  /** The kind of the event's object: "pod", "node", or a kind of ForageResource. */
  readonly kind: string;
  readonly name: string;
  readonly type: "Normal" | "Warning";
  /** The reason in CamelCase, such as "Scheduled", "RolledBack" or "ScaledUp". */
  readonly reason: string;
  /** A sentence for people that says what happened and why. */
  readonly message: string;
  /**
   * The key `namespace/kind/name` of the pod's workload, or of the resource's owner. Queries for that workload also return
   * this event.
   */
  readonly workload?: string;
  readonly node?: string;
  readonly rolloutId?: string;
}

/** Records events. Never blocks and never fails: events beyond its limits are counted and dropped. */
export interface EventRecorder {
  record(event: EventInput): void;
}
