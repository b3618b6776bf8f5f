/**
 * The rows of the live tables, as sent by the coordinator and shown by pages. Times are
 * milliseconds since the epoch.
 */

export interface NodeRow {
  readonly name: string;
  readonly zone: string;
  /** The state in one word: "Ready", "NotReady", "Unreachable". */
  readonly state: string;
  readonly message: string;
  readonly cordoned: boolean;
  /** The state of a drain: "", "draining", "drained" or "failed". */
  readonly drain: string;
  readonly version: string;
  readonly architecture: string;
  readonly pods: number;
  readonly maxPods: number;
  readonly gateway: boolean;
  /** Requested and allocatable CPU, in thousandths of a processor, and memory in bytes. */
  readonly cpu: readonly [requested: number, allocatable: number];
  readonly memory: readonly [requested: number, allocatable: number];
  /**
   * The use measured by the node, in thousandths of a processor and in bytes. Absent if not
   * reported.
   */
  readonly usage?: readonly [cpuMilli: number, memoryBytes: number];
}

export interface PodRow {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The workload, such as "container_service/web". */
  readonly workload: string;
  readonly node: string;
  /** The state in one word: "Running", "ImagePull", "CrashLoopBackOff". */
  readonly state: string;
  /** Whether the pod is ready, starting, completed, or has a problem. */
  readonly tone: Tone;
  /** The reason why the pod is not ready, or empty. */
  readonly message: string;
  /**
   * The progress of the image pull in percent. Absent if no image is pulled or the progress is
   * unknown.
   */
  readonly pulledPercent?: number;
  readonly ready: number;
  readonly containers: number;
  readonly restarts: number;
  readonly createdMs: number;
  /** The first characters of the template's hash. */
  readonly revision: string;
  readonly ip: string;
}

export type Tone = "good" | "busy" | "bad" | "off";

export interface ResourceRow {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly tone: Tone;
  readonly message: string;
  readonly replicas: number;
  readonly updated: number;
  readonly ready: number;
  readonly endpoints: number;
  readonly image: string;
  readonly owner: string;
  readonly rolloutId: string;
  readonly generation: number;
  readonly updatedMs: number;
  readonly deleting: boolean;
  /**
   * A short text that depends on the kind: a schedule, hostnames, ports, or the progress of a job.
   */
  readonly about: string;
  /** The next run of a cron job. Absent if there is none. */
  readonly nextMs?: number;
  /**
   * Whether the rollout of a container service is on hold: an operator has paused it, or its canary
   * waits for a promotion.
   */
  readonly paused?: true;
  readonly canary?: true;
  readonly autoscaling?: {
    readonly min: number;
    readonly max: number;
    readonly current: number;
    readonly desired: number;
    readonly reason: string;
  };
}

/** An object to which pods refer by name, without its values. */
export interface ObjectRow {
  /** The namespace; empty for priority classes. */
  readonly namespace: string;
  /** The kind: "secret", "config_map", "registry_credential", "claim" or "priority_class". */
  readonly kind: string;
  readonly name: string;
  /** The size in bytes of each value of a secret or a config map. */
  readonly sizes?: Readonly<Record<string, number>>;
  /** A short text about objects of other kinds. */
  readonly about: string;
  /** The number of pods that refer to the object. */
  readonly usedBy: number;
  readonly updatedMs: number;
}

/** A certificate that a route needs, or that is stored. */
export interface CertificateRow {
  readonly hostname: string;
  readonly state: string;
  readonly tone: Tone;
  readonly message: string;
  /** The time at which the certificate expires; 0 if there is none yet. */
  readonly notAfterMs: number;
}

/** A workspace instance. */
export interface WorkspaceRow {
  readonly id: string;
  readonly namespace: string;
  /** The workspace to which the instance belongs. */
  readonly workspace: string;
  readonly owner: string;
  /** The phase in one word: "Running", "Stopping". */
  readonly phase: string;
  readonly tone: Tone;
  readonly message: string;
  /** The URL; empty if a browser can't open it. */
  readonly url: string;
  readonly pod: string;
  readonly node: string;
  readonly startedMs: number;
}

/** Some of the changes since the last message. Keys are those of the rows. */
export interface LiveMessage {
  /** Set in the first message of a connection: all earlier rows are invalid. */
  readonly reset?: true;
  /** Set once, when the browser has received all rows. */
  readonly complete?: true;
  readonly nodes?: Rows<NodeRow>;
  readonly pods?: Rows<PodRow>;
  readonly resources?: Rows<ResourceRow>;
  readonly workspaces?: Rows<WorkspaceRow>;
  readonly objects?: Rows<ObjectRow>;
  readonly certificates?: Rows<CertificateRow>;
}

/** Rows by key; null means that the object no longer exists. */
export type Rows<Row> = Readonly<Record<string, Row | null>>;

export const LIVE_TOPICS = ["nodes", "resources", "pods", "workspaces", "objects", "certificates"] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];
