/**
 * The volumes of one host's pods. The real implementation is `host-volumes.ts`, the fake is `fake.ts`; both pass
 * `../../test/volumes-contract.ts`. All calls reject with a {@link VolumeError}. Calls for one pod wait for each other.
 */
export interface PodVolumes {
  /**
   * Must be called once, before any other method. Removes what belongs to none of the known pods, including what a crash left
   * incomplete, and takes over the rest unchanged. Never touches what containers of known pods have mounted.
   */
  recover(pods: PodsToRecover, signal: AbortSignal): Promise<void>;
  /** Makes all volumes of the pod ready. Cheap if they are: call it before each start of a container. */
  prepare(pod: PodVolumeSpec, signal: AbortSignal): Promise<void>;
  /**
   * Returns the mounts of a prepared pod's container, parents before children. It resolves sub-paths and creates missing ones
   * each time, so call it right before each start.
   */
  binds(
    podUid: string,
    container: string,
    mounts: readonly VolumeMount[],
    signal: AbortSignal,
  ): Promise<readonly VolumeBind[]>;
  /** Updates changed contents of file volumes in running containers, each volume in one step. Touches nothing else. */
  update(pod: PodVolumeSpec, signal: AbortSignal): Promise<void>;
  /** Removes all of the pod's but claims' data; its containers must be gone. Unknown uids are fine. To be repeated if it rejects. */
  release(podUid: string, signal: AbortSignal): Promise<void>;
  /** Persistent claims on this host, whether in use or not. */
  claims(): Promise<readonly ClaimState[]>;
  /** Deletes a claim with its data. IN_USE while a pod has it; unknown ones are fine. */
  removeClaim(namespace: string, name: string, signal: AbortSignal): Promise<void>;
  /** Leaves all volumes as they are. */
  close(): Promise<void>;
}

export interface PodsToRecover {
  readonly knownUids: ReadonlySet<string>;
  /** The volumes of known pods with live containers. Lost records of their use are restored from these. */
  readonly inUse: readonly PodVolumeSpec[];
}

export interface PodVolumeSpec {
  readonly uid: string;
  readonly volumes: readonly Volume[];
  readonly fsGroup?: { readonly gid: number; readonly changePolicy: "Always" | "OnRootMismatch" };
}

export interface Volume {
  /** Unique in the pod; a DNS label. */
  readonly name: string;
  readonly source: VolumeSource;
}

export type VolumeSource =
  | {
      readonly type: "emptyDir";
      readonly medium: "disk" | "memory";
      /** Undefined: no limit of its own on disk, half of the host's memory in memory. */
      readonly sizeLimitBytes?: number;
    }
  | FilesSource
  | {
      readonly type: "claim";
      readonly namespace: string;
      readonly claim: string;
      /** Counts when the claim is made, that is when a pod first uses it here. Undefined: no limit. */
      readonly capacityBytes?: number;
      readonly readOnly: boolean;
      /** Set if the pod does not declare such a volume (yet): SOURCE_MISSING. */
      readonly undeclared?: true;
    }
  | {
      readonly type: "hostPath";
      readonly path: string;
      readonly pathType: HostPathType;
      /** Absolute paths: the volume must lie at or below one of them, wherever links lead. Undefined: anywhere. */
      readonly within?: readonly string[];
    }
  | { readonly type: "nfs"; readonly server: string; readonly path: string; readonly readOnly: boolean }
  /** A directory of a {@link VolumeProvider}. */
  | { readonly type: "provided"; readonly provider: string; readonly id: string };

/** A part of the agent that fills directories and keeps them after their pods have gone. */
export interface VolumeProvider {
  /**
   * Returns the canonical path of a directory that is ready for the pod. Returns or rejects at once: UNAVAILABLE with the reason
   * while the directory is not ready, INVALID if it never will be.
   */
  prepare(id: string, podUid: string): Promise<string>;
}

/** A secret, a config map, or anything else that the caller has as bytes. */
export interface FilesSource {
  readonly type: "files";
  /** Whether the content must stay on tmpfs and never reach the disk. */
  readonly secret: boolean;
  /** The name for messages, such as `secret db`. */
  readonly title: string;
  /** Keyed by key; undefined: it doesn't exist (yet). */
  readonly contents?: ReadonlyMap<string, Uint8Array>;
  /** The keys that become files, with their paths. Empty: all keys, by their own names. */
  readonly items: readonly { readonly key: string; readonly path: string; readonly mode: number }[];
  /** Mode bits; 0 stands for 0644, and for the default in items. */
  readonly defaultMode: number;
  /** Missing contents and keys are left out instead of SOURCE_MISSING. */
  readonly optional: boolean;
  /** The owner of the files. Undefined: root. */
  readonly ownerUid?: number;
}

export const HOST_PATH_TYPES = [
  "",
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
] as const;
export type HostPathType = (typeof HOST_PATH_TYPES)[number];

export interface VolumeMount {
  readonly volume: string;
  /** Absolute, in the container. */
  readonly mountPath: string;
  /** Relative, in the volume; empty: all of it. */
  readonly subPath: string;
  readonly readOnly: boolean;
}

/** A bind mount in the form of `ContainerSpec.binds`. */
export interface VolumeBind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface ClaimState {
  readonly namespace: string;
  readonly name: string;
  readonly capacityBytes?: number;
  /** Known while it is mounted. */
  readonly usedBytes?: number;
  /** Uids of pods that have it. */
  readonly users: readonly string[];
}

/** Reports faults that appear after a call has returned. */
export interface VolumeEvents {
  /** Reports a volume without a hard limit that exceeds its size, so that its pod is evicted. Repeated as long as it lasts. */
  readonly exceeded: (excess: VolumeExcess) => void;
  /** Logs an event with its fields. */
  readonly warn: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface VolumeExcess {
  /** Undefined for a claim: it outlives its pods, and evicting them would free no space. */
  readonly podUid?: string;
  readonly volume: string;
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** The text for people. */
  readonly message: string;
}

export type VolumeErrorCode =
  /** The pod's specification can't be met. Final. */
  | "INVALID"
  /** Contents, keys or host paths that aren't there; may come. */
  | "SOURCE_MISSING"
  /** A host path that is something else than it should be. */
  | "WRONG_TYPE"
  /** A sub-path leads out of its volume. */
  | "ESCAPES"
  /** A server or the host's own disk doesn't answer in time. */
  | "UNAVAILABLE"
  | "NO_ROOM"
  /** A claim's file system can't be repaired without choosing what to lose. */
  | "DAMAGED"
  | "IN_USE"
  /** A tool of the host failed or is missing. */
  | "HOST_FAILED"
  | "ABORTED";

const FINAL_CODES: readonly VolumeErrorCode[] = ["INVALID", "DAMAGED"];

export class VolumeError extends Error {
  readonly code: VolumeErrorCode;
  /** Whether the same call may succeed later with nothing changed by the user's side. */
  readonly retryable: boolean;

  constructor(code: VolumeErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "VolumeError";
    this.code = code;
    this.retryable = !FINAL_CODES.includes(code);
  }
}
