/**
 * The volumes of the pods of one host. `host-volumes.ts` has the real implementation and `fake.ts` the one for tests;
 * both pass `../../test/volumes-contract.ts`. All calls reject with a {@link VolumeError}. Calls for the same pod run
 * one after the other.
 */
export interface PodVolumes {
  /**
   * Must be called once, before any other method. Removes everything that belongs to none of the known pods, including
   * incomplete state after a crash, and adopts the rest unchanged. Never changes what containers of known pods have
   * mounted.
   */
  recover(pods: PodsToRecover, signal: AbortSignal): Promise<void>;
  /**
   * Prepares all volumes of the pod. Cheap if they are prepared already, so call it before each start of a container.
   */
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
  /**
   * Removes everything of the pod except the data of claims. Its containers must be gone. Accepts unknown uids. Must be
   * repeated if it rejects.
   */
  release(podUid: string, signal: AbortSignal): Promise<void>;
  /** Returns the persistent claims on this host, whether in use or not. */
  claims(): Promise<readonly ClaimState[]>;
  /** Deletes a claim with its data. Rejects with IN_USE while a pod uses it. Accepts unknown claims. */
  removeClaim(namespace: string, name: string, signal: AbortSignal): Promise<void>;
  /** Stops measuring. Leaves all volumes unchanged. */
  close(): Promise<void>;
}

export interface PodsToRecover {
  readonly knownUids: ReadonlySet<string>;
  /** The volumes of known pods with live containers. They restore lost records of use. */
  readonly inUse: readonly PodVolumeSpec[];
}

export interface PodVolumeSpec {
  readonly uid: string;
  readonly volumes: readonly Volume[];
  readonly fsGroup?: { readonly gid: number; readonly changePolicy: "Always" | "OnRootMismatch" };
}

export interface Volume {
  /** A DNS label that is unique in the pod. */
  readonly name: string;
  readonly source: VolumeSource;
}

export type VolumeSource =
  | {
      readonly type: "emptyDir";
      readonly medium: "disk" | "memory";
      /** The limit in bytes. Undefined: none of its own on disk, half of the host's memory in memory. */
      readonly sizeLimitBytes?: number;
    }
  | FilesSource
  | {
      readonly type: "claim";
      readonly namespace: string;
      readonly claim: string;
      /**
       * The capacity when the claim is created, which happens when a pod first uses it on this host. Undefined: no
       * limit.
       */
      readonly capacityBytes?: number;
      readonly readOnly: boolean;
      /** Set if the pod does not declare such a volume (yet). The result is SOURCE_MISSING. */
      readonly undeclared?: true;
    }
  | {
      readonly type: "hostPath";
      readonly path: string;
      readonly pathType: HostPathType;
      /** Absolute paths. The volume must be at or below one of them after links are resolved. Undefined: anywhere. */
      readonly within?: readonly string[];
    }
  | { readonly type: "nfs"; readonly server: string; readonly path: string; readonly readOnly: boolean }
  /** A directory of a {@link VolumeProvider}. */
  | { readonly type: "provided"; readonly provider: string; readonly id: string };

/** A part of the agent that fills directories and keeps them after their pods are gone. */
export interface VolumeProvider {
  /**
   * Returns the canonical path of a directory that is ready for the pod. Never waits: rejects with UNAVAILABLE and the
   * reason while the directory is not ready, and with INVALID if it never will be.
   */
  prepare(id: string, podUid: string): Promise<string>;
}

/** A secret, a config map, or anything else whose content the caller has as bytes. */
export interface FilesSource {
  readonly type: "files";
  /** Whether the content must stay on tmpfs and never reach the disk. */
  readonly secret: boolean;
  /** The name for messages, such as `secret db`. */
  readonly title: string;
  /** Contents by key. Undefined if the object doesn't exist (yet). */
  readonly contents?: ReadonlyMap<string, Uint8Array>;
  /** The keys that become files, with their paths. Empty: all keys, by their own names. */
  readonly items: readonly { readonly key: string; readonly path: string; readonly mode: number }[];
  /** Mode bits. 0 means 0644, and the default for items. */
  readonly defaultMode: number;
  /** Whether missing contents and keys are left out instead of rejected with SOURCE_MISSING. */
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
  /** An absolute path in the container. */
  readonly mountPath: string;
  /** A path relative to the volume. Empty: the whole volume. */
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
  /** Available while the claim is mounted. */
  readonly usedBytes?: number;
  /** Uids of pods that use the claim. */
  readonly users: readonly string[];
}

/** Reports faults that appear after a call has returned. */
export interface VolumeEvents {
  /**
   * Reports a volume without a hard limit that exceeds its size, so that its pod is evicted. Repeated while the excess
   * lasts.
   */
  readonly exceeded: (excess: VolumeExcess) => void;
  /** Logs an event with its fields. */
  readonly warn: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface VolumeExcess {
  /** Undefined for a claim, which outlives its pods, so evicting them would free no space. */
  readonly podUid?: string;
  readonly volume: string;
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** The text for people. */
  readonly message: string;
}

export type VolumeErrorCode =
  /** The pod's specification can't be met, whatever changes on the host. */
  | "INVALID"
  /** Contents, keys or host paths don't exist, but may be created. */
  | "SOURCE_MISSING"
  /** A host path has another type than declared. */
  | "WRONG_TYPE"
  /** A sub-path leads out of its volume. */
  | "ESCAPES"
  /** A server or the host's own disk doesn't respond in time. */
  | "UNAVAILABLE"
  | "NO_ROOM"
  /** A claim's file system can't be repaired without a choice of which data to lose. */
  | "DAMAGED"
  | "IN_USE"
  /** A tool of the host failed or is missing. */
  | "HOST_FAILED"
  | "ABORTED";

const FINAL_CODES: readonly VolumeErrorCode[] = ["INVALID", "DAMAGED"];

export class VolumeError extends Error {
  readonly code: VolumeErrorCode;
  /** Whether the same call may succeed later without any change by the user. */
  readonly retryable: boolean;

  constructor(code: VolumeErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "VolumeError";
    this.code = code;
    this.retryable = !FINAL_CODES.includes(code);
  }
}
