import type { ApiTokenRecord } from "@forage/identity/api-token";
import type { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type {
  KeptPodRecord,
  NamespaceRecord,
  NodeRecord,
  NodeStatusRecord,
  ObjectRecord,
  PodRecord,
  ResourceRecord,
  RevisionRecord,
  RolloutRecord,
  ScaleRecord,
  ServiceAddressRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import type { ObjectName } from "../model/object-name.ts";
import type { PodRef } from "../model/pod-refs.ts";
import type { Workload } from "../model/workload.ts";
import type { RecordEntry } from "./record-view.ts";

/** A record with the revision that last changed it, which writers compare. */
export interface ResourceEntry {
  readonly key: string;
  readonly revision: number;
  readonly record: ResourceRecord;
  /**
   * The effective workload, from which a container service's pods are created: `applied`, or that of a rollback's revision.
   */
  readonly workload: Workload | undefined;
  /** The workload as applied. */
  readonly applied: Workload | undefined;
  /**
   * The reason why the workload can't be derived from the record. Its pods are not changed then. Undefined: it can be
   * derived.
   */
  readonly fault?: string;
}

export interface PodEntry {
  readonly key: string;
  readonly revision: number;
  readonly record: PodRecord;
  /** The key of its workload, `namespace/kind/name`. */
  readonly workloadKey: string;
  /** The objects to which the pod refers. */
  readonly refs: readonly PodRef[];
  /** The groups of the view that all pods of its template have. Absent: the template is not shared, or missing. */
  readonly templateGroups?: readonly string[];
  /** The last status that its node reported. Undefined: none has arrived yet. */
  readonly status: PodStatus | undefined;
  /** The time of the last change of the status, by the coordinator's clock. */
  readonly observedAtMs: number | undefined;
  /**
   * The time since which the pod has been ready without interruption, by the coordinator's clock. Undefined: it is not
   * ready, or has been since `observedAtMs`.
   */
  readonly readySinceMs?: number | undefined;
}

export interface NodeEntry {
  readonly name: string;
  readonly revision: number;
  readonly record: NodeRecord;
  readonly report: NodeStatusRecord | undefined;
  readonly health: NodeHealth;
}

/**
 * The liveness of a node. It describes the current state and is not stored. After a start of the coordinator, every node
 * has time to reconnect.
 */
export interface NodeHealth {
  /** Whether heartbeats arrive, or have arrived within the grace period. */
  readonly ready: boolean;
  /** The reason why the node is not ready. */
  readonly message: string;
  /** Whether the node is not ready but keeps its endpoints as last known, because most nodes were lost at once. */
  readonly kept?: boolean;
  /** The time of the last change of `ready`, since the epoch. Absent: the node has not connected since it joined. */
  readonly sinceMs?: number;
  /**
   * The time of the last heartbeat. Undefined: none has arrived since the coordinator started. Heartbeats change it, `usage`
   * and `traffic` in this object.
   */
  readonly lastSeenMs: number | undefined;
  readonly usage?: { readonly cpuMilli: number; readonly memoryBytes: number };
  /**
   * The number of requests that the node's gateway has answered since its proxy started. Absent: the node has no gateway,
   * or doesn't report it.
   */
  readonly traffic?: { readonly requests: number; readonly errors: number };
}

export interface RolloutEntry {
  readonly id: string;
  readonly revision: number;
  readonly record: RolloutRecord;
}

export interface ObjectEntry {
  readonly key: string;
  readonly revision: number;
  readonly name: ObjectName;
  readonly record: ObjectRecord;
}

export interface ApiTokenEntry {
  readonly id: string;
  readonly revision: number;
  readonly record: ApiTokenRecord;
}

/** A change of one entry of the view, with the entry before and after it. */
export type Change =
  | {
      readonly type: "api-token";
      readonly before: ApiTokenEntry | undefined;
      readonly after: ApiTokenEntry | undefined;
    }
  | {
      readonly type: "resource";
      readonly before: ResourceEntry | undefined;
      readonly after: ResourceEntry | undefined;
    }
  | { readonly type: "pod"; readonly before: PodEntry | undefined; readonly after: PodEntry | undefined }
  | {
      readonly type: "object";
      readonly before: ObjectEntry | undefined;
      readonly after: ObjectEntry | undefined;
    }
  | { readonly type: "node"; readonly before: NodeEntry | undefined; readonly after: NodeEntry | undefined }
  | {
      readonly type: "rollout";
      readonly before: RolloutEntry | undefined;
      readonly after: RolloutEntry | undefined;
    }
  | {
      readonly type: "revision";
      readonly before: RecordEntry<RevisionRecord> | undefined;
      readonly after: RecordEntry<RevisionRecord> | undefined;
    }
  | {
      readonly type: "workload-status";
      readonly before: RecordEntry<WorkloadStatusRecord> | undefined;
      readonly after: RecordEntry<WorkloadStatusRecord> | undefined;
    }
  | {
      readonly type: "kept-pod";
      readonly before: RecordEntry<KeptPodRecord> | undefined;
      readonly after: RecordEntry<KeptPodRecord> | undefined;
    }
  | {
      readonly type: "scale";
      readonly before: RecordEntry<ScaleRecord> | undefined;
      readonly after: RecordEntry<ScaleRecord> | undefined;
    }
  | {
      /** A change of a namespace's policy or quota. */
      readonly type: "namespace";
      readonly before: RecordEntry<NamespaceRecord> | undefined;
      readonly after: RecordEntry<NamespaceRecord> | undefined;
    }
  | {
      readonly type: "service-address";
      readonly before: RecordEntry<ServiceAddressRecord> | undefined;
      readonly after: RecordEntry<ServiceAddressRecord> | undefined;
    };
