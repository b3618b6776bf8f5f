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
  /** The workload that a container service's pods are created from: `wanted`, or the revision of a rollback. */
  readonly workload: Workload | undefined;
  /** The workload as it was applied. */
  readonly wanted: Workload | undefined;
  /**
   * The reason why the workload can't be derived from the record. Its pods then stay as they are. Undefined: it can be
   * derived.
   */
  readonly fault?: string;
}

export interface PodEntry {
  readonly key: string;
  readonly revision: number;
  readonly record: PodRecord;
  /** `namespace/kind/name` of its workload. */
  readonly workloadKey: string;
  /** The objects that it refers to. */
  readonly refs: readonly PodRef[];
  /** The last status from its node. Undefined until the first one arrives. */
  readonly status: PodStatus | undefined;
  /** The time of the last change of the status, by the coordinator's clock. */
  readonly observedAtMs: number | undefined;
  /**
   * The time since which it has been ready without a break, by the same clock; undefined: it is not ready, or since
   * `observedAtMs`.
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
 * The liveness of a node. It is not stored, because it describes the present. After a start of the coordinator every node has
 * time to reconnect.
 */
export interface NodeHealth {
  /** Heartbeats arrive, or arrived within the grace period. */
  readonly ready: boolean;
  /** The reason why it is not ready. */
  readonly message: string;
  /** Whether endpoints on the node stay as last known: it isn't ready, but most nodes are lost at once. */
  readonly kept?: boolean;
  /** The time of the last change of `ready`, since the epoch. Absent: the node has not connected since it joined. */
  readonly sinceMs?: number;
  /** Undefined: not since this coordinator started. */
  readonly lastSeenMs: number | undefined;
  readonly usage?: { readonly cpuMilli: number; readonly memoryBytes: number };
  /** Requests that the node's gateway has answered since its proxy started. Absent: it serves none, or doesn't report it. */
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

/** One thing that changed in the view, with what it was before. */
export type Change =
  | {
      readonly kind: "api-token";
      readonly before: ApiTokenEntry | undefined;
      readonly after: ApiTokenEntry | undefined;
    }
  | {
      readonly kind: "resource";
      readonly before: ResourceEntry | undefined;
      readonly after: ResourceEntry | undefined;
    }
  | { readonly kind: "pod"; readonly before: PodEntry | undefined; readonly after: PodEntry | undefined }
  | {
      readonly kind: "object";
      readonly before: ObjectEntry | undefined;
      readonly after: ObjectEntry | undefined;
    }
  | { readonly kind: "node"; readonly before: NodeEntry | undefined; readonly after: NodeEntry | undefined }
  | {
      readonly kind: "rollout";
      readonly before: RolloutEntry | undefined;
      readonly after: RolloutEntry | undefined;
    }
  | {
      readonly kind: "revision";
      readonly before: RecordEntry<RevisionRecord> | undefined;
      readonly after: RecordEntry<RevisionRecord> | undefined;
    }
  | {
      readonly kind: "workload-status";
      readonly before: RecordEntry<WorkloadStatusRecord> | undefined;
      readonly after: RecordEntry<WorkloadStatusRecord> | undefined;
    }
  | {
      readonly kind: "kept-pod";
      readonly before: RecordEntry<KeptPodRecord> | undefined;
      readonly after: RecordEntry<KeptPodRecord> | undefined;
    }
  | {
      readonly kind: "scale";
      readonly before: RecordEntry<ScaleRecord> | undefined;
      readonly after: RecordEntry<ScaleRecord> | undefined;
    }
  | {
      /** Policies or quotas. */
      readonly kind: "namespace";
      readonly before: RecordEntry<NamespaceRecord> | undefined;
      readonly after: RecordEntry<NamespaceRecord> | undefined;
    }
  | {
      readonly kind: "service-address";
      readonly before: RecordEntry<ServiceAddressRecord> | undefined;
      readonly after: RecordEntry<ServiceAddressRecord> | undefined;
    };
