/**
 * The container runtime as the agent uses it. `nerdctl/` has the real implementation and `fake.ts` the one for tests;
 * both pass the contract suite in `../../test/runtime-contract.ts`.
 *
 * All calls reject with a {@link RuntimeError}. A call that was interrupted by its signal or its own time limit may
 * still take effect: check with `list()` before retrying.
 */
export interface ContainerRuntime {
  /** Returns the versions of the runtime's programs. Rejects with UNAVAILABLE if containerd doesn't respond. */
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Lists every container with this instance's labels, whatever its state. */
  list(signal: AbortSignal): Promise<readonly RuntimeContainer[]>;
  /** Creates and starts a container. Rejects with ALREADY_EXISTS if the name is taken, so a name never starts twice. */
  run(spec: ContainerSpec, signal: AbortSignal): Promise<{ readonly id: string }>;
  /**
   * Sends the stop signal, then SIGKILL after `graceMs`. Resolves once the container is not running, also for unknown
   * ids.
   */
  stop(id: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Sends a signal, such as SIGHUP, to the container's first process. NOT_FOUND if the container is not running. */
  kill(id: string, signalName: string, signal: AbortSignal): Promise<void>;
  /** Removes containers and their snapshots, and kills those that still run. Accepts unknown ids. */
  remove(ids: readonly string[], signal: AbortSignal): Promise<void>;
  /** Returns the state with the exit code, or undefined if there is no such container. */
  inspect(id: string, signal: AbortSignal): Promise<RuntimeContainer | undefined>;
  /** Reports whether the image is in the local store. Never accesses the network. */
  hasImage(reference: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Pulls an image. Rejects with IMAGE_NOT_FOUND, IMAGE_DENIED or IMAGE_INVALID, which are final, or with
   * REGISTRY_UNAVAILABLE, which is retryable.
   */
  pull(reference: string, signal: AbortSignal, options?: PullOptions): Promise<void>;
  /** Returns the references of all local images in their full form. */
  listImages(signal: AbortSignal): Promise<readonly string[]>;
  /** Removes an image. Rejects with `in-use` if a container was made from it, running or not. Never uses the network. */
  removeImage(reference: string, signal: AbortSignal): Promise<"removed" | "in-use" | "absent">;
  /** Returns a directory on the file system of the images and the containers' writable layers. Undefined if unknown. */
  imageStorage(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Returns the directory of a running container's writable layer. Undefined if the container isn't running or the
   * directory is unknown.
   */
  ownLayer(id: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Yields events until the signal aborts, then ends without an error. The first event is `listening`, once the
   * subscription has begun. Every later change is reported, so list the containers then. Earlier events may appear too.
   * Throws UNAVAILABLE if the source breaks or the reader is too far behind; subscribe and list again. Events of other
   * users' containers in the same containerd namespace appear too; select by id.
   */
  events(signal: AbortSignal): AsyncIterable<RuntimeEvent>;
  /** Runs a command in a running container. */
  exec(id: string, options: RuntimeExecOptions, signal: AbortSignal): RuntimeExec;
  /** Returns CPU and memory usage from the cgroup, or undefined if the container is not running. */
  usage(id: string): Promise<ContainerUsage | undefined>;
  /**
   * Returns all statistics that the kernel has for a container, which costs more file reads than `usage`. Undefined if
   * it is not running.
   */
  detailedUsage(id: string): Promise<DetailedUsage | undefined>;
  /**
   * Returns how many of the container's processes the kernel has killed for lack of memory. Available until its
   * removal, also after its end.
   */
  oomKills(id: string): Promise<number>;
  close(): Promise<void>;
}

export interface RuntimeVersion {
  readonly containerd: string;
  readonly nerdctl: string;
}

export interface PullOptions {
  /** Logins. Those for the image's registry are tried in turn; without any, the pull is anonymous. Never logged. */
  readonly credentials?: readonly RegistryLogin[];
  /** Called on progress, up to ten times a second. */
  readonly onProgress?: (progress: PullState) => void;
}

export interface RegistryLogin {
  /** Host and port as image names spell it; `docker.io` for images without a registry. */
  readonly server: string;
  readonly username: string;
  readonly password: string;
}

export interface PullState {
  /** The number of finished layers. Layers that were present before count as finished. */
  readonly layersDone: number;
  /** The number of layers known so far. */
  readonly layers: number;
  readonly bytesDone: number;
  /** The total size of layers whose size is known. */
  readonly bytesTotal: number;
}

export interface ContainerSpec {
  /**
   * A name that is unique on the host and never reused by another attempt: `<instance>-<pod
   * uid>-<container>-<attempt>`.
   */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  /** Replaces the image's ENTRYPOINT and drops its CMD, unless empty. */
  readonly command: readonly string[];
  /** Replaces the image's CMD, unless empty. */
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly workingDir?: string;
  /** Path of the pod's network namespace, {@link HOST_NETWORK} or {@link NO_NETWORK}. */
  readonly networkNamespace: string;
  readonly hostname: string;
  /**
   * Files and directories such as /etc/resolv.conf, /etc/hosts and volumes. Parents precede what is mounted in them.
   */
  readonly binds: readonly BindMount[];
  /** The CPU limit in thousandths of a CPU. Undefined: no limit. */
  readonly cpuLimitMilli?: number;
  readonly memoryLimitBytes?: number;
  /** The cpu request on the scale of cgroup v1 (2..262144). */
  readonly cpuShares?: number;
  /** The file for stdout and stderr, in an existing directory. */
  readonly logFile: string;
  /**
   * FIFOs that receive stdout and stderr instead of the log. Another process reads them, and the log then contains only
   * the runtime's own messages. With `tty`, the FIFO for stdout receives all output.
   */
  readonly streamPipes?: { readonly stdout: string; readonly stderr: string };
  /** The user of the container's processes. Undefined: the user that the image sets. */
  readonly user?: ContainerUser;
  /** Undefined: the runtime's own defaults. */
  readonly security?: ContainerSecurity;
  /** Whether stdin stays open. With `tty` too, all three streams are a terminal. */
  readonly stdin?: boolean;
  readonly tty?: boolean;
  readonly devices?: readonly HostDevice[];
  /**
   * The path of a program like runc, or the name of a shim (`io.containerd.kata.v2`), from the agent's configuration.
   */
  readonly ociRuntime?: string;
  /** The size limit of the container's writable layer in bytes. Undefined: no limit. */
  readonly rootLimitBytes?: number;
  /** Settings that pods do not have. */
  readonly tuning?: ContainerTuning;
}

/** The `networkNamespace` of a container on the host's network. */
export const HOST_NETWORK = "host";
/** The `networkNamespace` of a container in a new namespace with only a loopback interface. */
export const NO_NETWORK = "none";

export interface BindMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  /** Whether mounts made later on one side appear on the other. Undefined: `rprivate`. */
  readonly propagation?: MountPropagation;
}

export type MountPropagation = "private" | "rprivate" | "slave" | "rslave" | "shared" | "rshared";

/** Settings that only the runtime defines. Each undefined field leaves the runtime's default. */
export interface ContainerTuning {
  /** Memory above this is reclaimed first if the host runs short. */
  readonly memorySoftLimitBytes?: number;
  /** The limit of memory plus swap. Undefined: the memory limit, which disables swap. -1: unlimited swap. */
  readonly memorySwapLimitBytes?: number;
  /** The kernel's readiness to swap, from 0 to 100. Not supported with cgroup v2. */
  readonly memorySwappiness?: number;
  /** The CPUs in the kernel's list format, such as `0-2,4`. */
  readonly cpuset?: string;
  readonly cpuPeriodMicros?: number;
  readonly cpuQuotaMicros?: number;
  readonly pidsLimit?: number;
  /** The size of /dev/shm. */
  readonly shmBytes?: number;
  /** The adjustment of the OOM score, from -1000 to 1000. */
  readonly oomScoreAdjustment?: number;
  /** Resource limits; -1 means unlimited. */
  readonly ulimits?: readonly { readonly name: string; readonly soft: number; readonly hard: number }[];
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly tmpfs?: readonly { readonly target: string; readonly sizeBytes?: number }[];
  /** The host path of an init program that runs as process 1 and starts the command. */
  readonly initProgram?: string;
  /** Namespaces of the host that the container shares. */
  readonly hostNamespaces?: readonly ("pid" | "ipc")[];
  readonly cgroupNamespace?: "private" | "host";
}

export interface ContainerUser {
  /**
   * A user of the image by name or number, with an optional group: `nobody`, `www:www`, `1000:0`. Replaces `uid` and
   * `gid`.
   */
  readonly name?: string;
  /** Undefined: the uid of the image's user. */
  readonly uid?: number;
  /** Undefined: the image's group, or root's for a uid that the image doesn't know. */
  readonly gid?: number;
  readonly supplementalGroups: readonly number[];
}

export interface ContainerSecurity {
  /** If set, `run` rejects with START_FAILED if the image's user is root or is not a number. */
  readonly runAsNonRoot: boolean;
  readonly readOnlyRootFilesystem: boolean;
  readonly privileged: boolean;
  /** If false, no_new_privs is set. */
  readonly allowPrivilegeEscalation: boolean;
  /**
   * Capabilities with or without CAP_; "ALL" means every capability. ALL is dropped before others are added, single
   * ones afterwards.
   */
  readonly capabilities: { readonly add: readonly string[]; readonly drop: readonly string[] };
  readonly seccomp:
    | { readonly type: "RuntimeDefault" | "Unconfined" }
    | { readonly type: "Localhost"; readonly path: string };
  /**
   * The name of a loaded profile, or `unconfined`. Rejected on hosts without AppArmor. Undefined: the runtime's default
   * profile, if the host has AppArmor.
   */
  readonly appArmorProfile?: string;
  /** The SELinux type. Ignored by hosts without SELinux. */
  readonly seLinuxType?: string;
}

export interface HostDevice {
  readonly hostPath: string;
  readonly containerPath: string;
  /** A combination of "r", "w" and "m". */
  readonly permissions: string;
}

export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly state: "created" | "running" | "paused" | "exited" | "unknown";
  /** Set by `inspect` for exited containers; `list` may omit it. */
  readonly exitCode?: number;
  readonly startedAtMs?: number;
  readonly finishedAtMs?: number;
  readonly pid?: number;
}

export type RuntimeEvent =
  | { readonly type: "listening" }
  | { readonly type: "started"; readonly containerId: string }
  | {
      readonly type: "exited";
      readonly containerId: string;
      readonly exitCode: number;
      readonly atMs: number;
    }
  | { readonly type: "oom"; readonly containerId: string }
  | { readonly type: "removed"; readonly containerId: string };

export interface RuntimeExecOptions {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface RuntimeExec {
  /** The output in order. The consumer pulls, so a slow consumer slows the command. With a tty all output is stdout. */
  readonly output: AsyncIterable<{ readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }>;
  /** Resolves when the data is written. Rejects once the command has ended. */
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(columns: number, rows: number): void;
  /** The command's exit code: 128 + n if a signal ended it, 126 or 127 if it could not be started. */
  readonly exitCode: Promise<number>;
}

export interface ContainerUsage {
  readonly cpuNanos: number;
  readonly memoryBytes: number;
  /** The working set: memory usage less inactive file cache. */
  readonly workingSetBytes: number;
  readonly oomKills: number;
}

/** Statistics of a container. Counters start with the container. Undefined fields are not measured on this host. */
export interface DetailedUsage extends Omit<ContainerUsage, "oomKills"> {
  readonly userNanos: number;
  readonly systemNanos: number;
  /** The number of periods in which the CPU limit throttled the container, and the total throttled time. */
  readonly throttledPeriods?: number;
  readonly throttledNanos?: number;
  /** Anonymous memory and page cache, in bytes. */
  readonly rssBytes: number;
  readonly cacheBytes: number;
  readonly swapBytes?: number;
  readonly maxMemoryBytes?: number;
  readonly kernelBytes?: number;
  readonly maxKernelBytes?: number;
  /** The running processes, at most 128. */
  readonly processes: readonly ProcessUsage[];
}

export interface ProcessUsage {
  readonly pid: number;
  /**
   * The start of the process in clock ticks since boot. It distinguishes the process from a later one with the same id.
   */
  readonly startTicks: number;
  readonly userNanos: number;
  readonly systemNanos: number;
  readonly rssBytes: number;
  readonly swapBytes: number;
}

export type RuntimeErrorCode =
  | "UNAVAILABLE"
  | "TIMEOUT"
  | "ALREADY_EXISTS"
  | "NOT_FOUND"
  | "IMAGE_NOT_FOUND"
  | "IMAGE_DENIED"
  | "IMAGE_INVALID"
  | "REGISTRY_UNAVAILABLE"
  | "START_FAILED"
  | "ABORTED"
  | "UNKNOWN";

export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  /** Whether the same call may succeed later without any change by the user. */
  readonly retryable: boolean;

  constructor(code: RuntimeErrorCode, message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = "RuntimeError";
    this.code = code;
    this.retryable = options.retryable;
  }
}
