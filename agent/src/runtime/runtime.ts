/**
 * The container runtime as the agent needs it. Real one: nerdctl (`nerdctl/`); fake: `fake.ts`;
 * both pass the contract suite in `../../test/runtime-contract.ts`.
 *
 * All calls reject with a {@link RuntimeError}. A call that was cut off by its signal or its own
 * time limit may still take effect: check with `list()` before trying again.
 */
export interface ContainerRuntime {
  /** Versions of what stands behind it; rejects with UNAVAILABLE when containerd doesn't answer. */
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Lists every container with this instance's labels, whatever its state. */
  list(signal: AbortSignal): Promise<readonly RuntimeContainer[]>;
  /** Creates and starts. Idempotent by name: ALREADY_EXISTS if the name is taken. */
  run(spec: ContainerSpec, signal: AbortSignal): Promise<{ readonly id: string }>;
  /** Stop signal, then SIGKILL after `graceMs`. Resolves once the container is not running; unknown ids resolve. */
  stop(id: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Sends a signal, such as SIGHUP, to the container's first process. NOT_FOUND if the container is not running. */
  kill(id: string, signalName: string, signal: AbortSignal): Promise<void>;
  /** Removes containers and their snapshots, killing what still runs. Unknown ids are fine. */
  remove(ids: readonly string[], signal: AbortSignal): Promise<void>;
  /** State with exit code; undefined if there is no such container. */
  inspect(id: string, signal: AbortSignal): Promise<RuntimeContainer | undefined>;
  /** True if the image is in the local store. Never touches the network. */
  hasImage(reference: string, signal: AbortSignal): Promise<boolean>;
  /** IMAGE_NOT_FOUND, IMAGE_DENIED and IMAGE_INVALID are final; REGISTRY_UNAVAILABLE is worth waiting for. */
  pull(reference: string, signal: AbortSignal, options?: PullOptions): Promise<void>;
  /** Returns the references of all local images in their full form. */
  listImages(signal: AbortSignal): Promise<readonly string[]>;
  /** Removes an image. Rejects with `in-use` if a container was made from it, running or not. Never uses the network. */
  removeImage(reference: string, signal: AbortSignal): Promise<"removed" | "in-use" | "absent">;
  /** Returns a directory on the file system of images and containers' own layers. Undefined if it is unknown. */
  imageStorage(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Returns the directory with the files that a running container has written over its image. Undefined if it isn't running, or
   * if it is unknown.
   */
  ownLayer(id: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Yields events until the signal, then ends without an error. `listening` comes first, once the subscription has begun:
   * everything after it is reported, so list then and nothing is missed. Earlier events may appear too. Throws UNAVAILABLE when
   * the source breaks or the reader is too far behind: listen again, then list. Containers of other users of the same containerd
   * namespace appear too; select yours by id.
   */
  events(signal: AbortSignal): AsyncIterable<RuntimeEvent>;
  /** Runs a command in a running container. */
  exec(id: string, options: RuntimeExecOptions, signal: AbortSignal): RuntimeExec;
  /** CPU and memory from the cgroup; undefined if it is not running. */
  usage(id: string): Promise<ContainerUsage | undefined>;
  /**
   * Returns all accounting of the kernel for a container, which costs more file reads than `usage`; undefined if it is not
   * running.
   */
  detailedUsage(id: string): Promise<DetailedUsage | undefined>;
  /**
   * Returns how many of its processes the kernel has killed for lack of memory. Known until it is removed, also after its end.
   */
  oomKills(id: string): Promise<number>;
  close(): Promise<void>;
}

export interface RuntimeVersion {
  readonly containerd: string;
  readonly nerdctl: string;
}

export interface PullOptions {
  /** Logins. Those for the image's registry are tried in turn; without any, the pull is anonymous. They are never logged. */
  readonly credentials?: readonly RegistryLogin[];
  /** Called each time progress is seen, up to ten times a second. */
  readonly onProgress?: (progress: PullState) => void;
}

export interface RegistryLogin {
  /** Host and port as images name it; `docker.io` for images that name none. */
  readonly server: string;
  readonly username: string;
  readonly password: string;
}

export interface PullState {
  /** The number of finished layers. Layers that were present before count as finished. */
  readonly layersDone: number;
  /** Known so far. */
  readonly layers: number;
  readonly bytesDone: number;
  /** The size of the layers with a known size. */
  readonly bytesTotal: number;
}

export interface ContainerSpec {
  /** Unique on the host and never reused by another attempt: `<instance>-<pod uid>-<container>-<attempt>`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  /** Replaces the image's ENTRYPOINT when not empty (and drops its CMD). */
  readonly command: readonly string[];
  /** Replaces the image's CMD when not empty. */
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly workingDir?: string;
  /** Path of the pod's network namespace, {@link HOST_NETWORK} or {@link NO_NETWORK}. */
  readonly networkNamespace: string;
  readonly hostname: string;
  /** Files and directories such as /etc/resolv.conf, /etc/hosts and volumes. Parents come before what is mounted in them. */
  readonly binds: readonly BindMount[];
  /** Limits; undefined: none. */
  readonly cpuLimitMilli?: number;
  readonly memoryLimitBytes?: number;
  /** The cpu request in the scale of cgroup v1 (2..262144). */
  readonly cpuShares?: number;
  /** The file of stdout and stderr; its directory exists. */
  readonly logFile: string;
  /**
   * FIFOs that receive stdout and stderr instead of the log. Another process reads them, and the log then contains only the
   * runtime's own messages. With `tty`, stdout's receives everything.
   */
  readonly streamPipes?: { readonly stdout: string; readonly stderr: string };
  /** Undefined: as the image says. */
  readonly user?: ContainerUser;
  /** Undefined: the runtime's own defaults. */
  readonly security?: ContainerSecurity;
  /** Keeps stdin open; with `tty` too, a terminal is on all three. */
  readonly stdin?: boolean;
  readonly tty?: boolean;
  readonly devices?: readonly HostDevice[];
  /** Path of a program like runc, or the name of a shim (`io.containerd.kata.v2`), from the agent's configuration. */
  readonly ociRuntime?: string;
  /** Bytes that the container's own layer may hold; undefined: no limit. */
  readonly rootLimitBytes?: number;
  /** Settings that pods do not have. */
  readonly tuning?: ContainerTuning;
}

/** `networkNamespace` of a container that has the host's network. */
export const HOST_NETWORK = "host";
/** `networkNamespace` of a container that has a new namespace with a loopback interface only. */
export const NO_NETWORK = "none";

export interface BindMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  /** Whether mounts made later on one side appear on the other. Undefined: `rprivate`. */
  readonly propagation?: MountPropagation;
}

export type MountPropagation = "private" | "rprivate" | "slave" | "rslave" | "shared" | "rshared";

/** Each undefined field leaves the runtime's default. */
export interface ContainerTuning {
  /** The kernel reclaims memory above this first when the host runs short. */
  readonly memorySoftLimitBytes?: number;
  /** Memory plus swap. Undefined: the memory limit, which means no swap. -1: unlimited swap. */
  readonly memorySwapLimitBytes?: number;
  /** 0 to 100: how readily the kernel swaps. Not with cgroup v2. */
  readonly memorySwappiness?: number;
  /** The CPUs in the kernel's list format, such as `0-2,4`. */
  readonly cpuset?: string;
  readonly cpuPeriodMicros?: number;
  readonly cpuQuotaMicros?: number;
  readonly pidsLimit?: number;
  /** Size of /dev/shm. */
  readonly shmBytes?: number;
  /** -1000 to 1000. */
  readonly oomScoreAdjustment?: number;
  /** A limit of -1 is no limit. */
  readonly ulimits?: readonly { readonly name: string; readonly soft: number; readonly hard: number }[];
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly tmpfs?: readonly { readonly target: string; readonly sizeBytes?: number }[];
  /** Host path of an init program that runs as process 1 and starts the command. */
  readonly initProgram?: string;
  /** Namespaces of the host that the container shares. */
  readonly hostNamespaces?: readonly ("pid" | "ipc")[];
  readonly cgroupNamespace?: "private" | "host";
}

export interface ContainerUser {
  /** A user of the image by name or number, with an optional group: `nobody`, `www:www`, `1000:0`. Replaces `uid` and `gid`. */
  readonly name?: string;
  /** Undefined: the image's. */
  readonly uid?: number;
  /** Undefined: the image's, or root's for a uid that the image doesn't know. */
  readonly gid?: number;
  readonly supplementalGroups: readonly number[];
}

export interface ContainerSecurity {
  /** Rejects with START_FAILED and a reason that names the image's user if that is root or no number. */
  readonly runAsNonRoot: boolean;
  readonly readOnlyRootFilesystem: boolean;
  readonly privileged: boolean;
  /** False: no_new_privs. */
  readonly allowPrivilegeEscalation: boolean;
  /**
   * Capabilities with or without CAP_; "ALL" stands for every one. ALL is dropped before others are added, single ones after.
   */
  readonly capabilities: { readonly add: readonly string[]; readonly drop: readonly string[] };
  readonly seccomp:
    | { readonly type: "RuntimeDefault" | "Unconfined" }
    | { readonly type: "Localhost"; readonly path: string };
  /** The name of a loaded profile, or `unconfined`. Undefined: the runtime's own, if the host has AppArmor. Only where it has. */
  readonly appArmorProfile?: string;
  /** The SELinux type. Ignored by hosts without SELinux. */
  readonly seLinuxType?: string;
}

export interface HostDevice {
  readonly hostPath: string;
  readonly containerPath: string;
  /** Letters of "r", "w" and "m". */
  readonly permissions: string;
}

export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly state: "created" | "running" | "paused" | "exited" | "unknown";
  /** Set by `inspect` when exited; `list` may leave them out. */
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
  /** Ordered output; each consumer pulls, so a slow one slows the command. With a tty all is stdout. */
  readonly output: AsyncIterable<{ readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }>;
  /** Resolves when written; rejects once the command has ended. */
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(columns: number, rows: number): void;
  /** The command's own exit code; 128 + n when a signal ended it; 126/127 when it could not be started. */
  readonly exitCode: Promise<number>;
}

export interface ContainerUsage {
  readonly cpuNanos: number;
  readonly memoryBytes: number;
  /** Working set: usage less inactive file cache. */
  readonly workingSetBytes: number;
  readonly oomKills: number;
}

/** Counters start with the container. Undefined fields are not measured on this host. */
export interface DetailedUsage extends Omit<ContainerUsage, "oomKills"> {
  readonly userNanos: number;
  readonly systemNanos: number;
  /** Periods in which the CPU limit held the container up, and for how long in all. */
  readonly throttledPeriods?: number;
  readonly throttledNanos?: number;
  /** Anonymous memory and page cache. */
  readonly rssBytes: number;
  readonly cacheBytes: number;
  readonly swapBytes?: number;
  readonly maxMemoryBytes?: number;
  readonly kernelBytes?: number;
  readonly maxKernelBytes?: number;
  /** The processes that run now, at most 128 of them. */
  readonly processes: readonly ProcessUsage[];
}

export interface ProcessUsage {
  readonly pid: number;
  /** The start of the process in clock ticks since the boot. A later process with the same id has another one. */
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
  /** Whether the same call may succeed later with nothing changed by the user. */
  readonly retryable: boolean;

  constructor(code: RuntimeErrorCode, message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = "RuntimeError";
    this.code = code;
    this.retryable = options.retryable;
  }
}
