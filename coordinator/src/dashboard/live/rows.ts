/** The rows of the live tables, as the coordinator sends them and pages show them. Times are milliseconds since the epoch. */

export interface NodeRow {
  readonly name: string;
  readonly zone: string;
  /** One word: "Ready", "NotReady", "Unreachable". */
  readonly state: string;
  readonly message: string;
  readonly cordoned: boolean;
  /** "", "draining", "drained" or "failed". */
  readonly drain: string;
  readonly version: string;
  readonly architecture: string;
  readonly pods: number;
  readonly maxPods: number;
  readonly gateway: boolean;
  /** Requested and allocatable, in thousandths of a processor and in bytes. */
  readonly cpu: readonly [requested: number, allocatable: number];
  readonly memory: readonly [requested: number, allocatable: number];
  /** Measured by the node: thousandths of a processor, and bytes. Absent: not reported. */
  readonly usage?: readonly [cpuMilli: number, memoryBytes: number];
}

export interface PodRow {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** "container_service/web". */
  readonly workload: string;
  readonly node: string;
  /** One word: "Running", "ImagePull", "CrashLoopBackOff". */
  readonly state: string;
  /** Ready, still on the way, at its end, or in trouble. */
  readonly tone: Tone;
  /** The reason why it is not ready; empty without one. */
  readonly message: string;
  /** The progress of the image that it pulls. Absent: it pulls none, or the progress is not known. */
  readonly pulledPercent?: number;
  readonly ready: number;
  readonly containers: number;
  readonly restarts: number;
  readonly createdMs: number;
  /** The first characters of the hash of its template. */
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
  /** A short text about its kind: a schedule, hostnames, ports, or how far a job is. */
  readonly about: string;
  /** The next run of a cron job. Absent: there is none. */
  readonly nextMs?: number;
  /** The rollout of a container service waits: an operator has paused it, or its canary waits for a promotion. */
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

/** An object that pods refer to by name, without its values. */
export interface ObjectRow {
  /** Empty for priority classes. */
  readonly namespace: string;
  /** "secret", "config_map", "registry_credential", "claim" or "priority_class". */
  readonly kind: string;
  readonly name: string;
  /** Bytes of each value of a secret or a config map. */
  readonly sizes?: Readonly<Record<string, number>>;
  /** A short text about the other kinds. */
  readonly about: string;
  /** The number of pods that refer to it. */
  readonly usedBy: number;
  readonly updatedMs: number;
}

/** A certificate that a route needs, or that is kept. */
export interface CertificateRow {
  readonly hostname: string;
  readonly state: string;
  readonly tone: Tone;
  readonly message: string;
  /** 0: there is no certificate yet. */
  readonly notAfterMs: number;
}

/** An instance of a workspace. */
export interface WorkspaceRow {
  readonly id: string;
  readonly namespace: string;
  /** The workspace whose content it has. */
  readonly workspace: string;
  readonly owner: string;
  /** One word: "Running", "Stopping". */
  readonly phase: string;
  readonly tone: Tone;
  readonly message: string;
  /** Empty: a browser can't open it. */
  readonly url: string;
  readonly pod: string;
  readonly node: string;
  readonly startedMs: number;
}

/** A part of what changed since the last message. Keys are those of the rows. */
export interface LiveMessage {
  /** All rows of before are void: the first message of a connection. */
  readonly reset?: true;
  /** The browser now has everything. Sent once. */
  readonly complete?: true;
  readonly nodes?: Rows<NodeRow>;
  readonly pods?: Rows<PodRow>;
  readonly resources?: Rows<ResourceRow>;
  readonly workspaces?: Rows<WorkspaceRow>;
  readonly objects?: Rows<ObjectRow>;
  readonly certificates?: Rows<CertificateRow>;
}

/** Rows by key; null: it is gone. */
export type Rows<Row> = Readonly<Record<string, Row | null>>;

export const LIVE_TOPICS = ["nodes", "resources", "pods", "workspaces", "objects", "certificates"] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];
