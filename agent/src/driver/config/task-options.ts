/**
 * The driver configuration of one task: the `config` block of a job, decoded and validated.
 * A field is `undefined` or empty if the job leaves it out. Sizes are bytes and durations milliseconds.
 */
export interface TaskOptions {
  /** The image's reference, as the job gives it. Never empty. */
  readonly image: string;
  /** Replaces the image's ENTRYPOINT when not empty, and drops its CMD. */
  readonly entrypoint: readonly string[];
  /** Replaces the image's CMD, together with `args`: the CMD is `[command, ...args]`. */
  readonly command?: string;
  /** Follow `command`; without a command they replace the image's CMD. */
  readonly args: readonly string[];
  /** Working directory; an absolute path. */
  readonly workDir?: string;
  readonly hostname?: string;
  /** Runs a small init process as process 1, which forwards signals and reaps zombies. */
  readonly init: boolean;
  /** Runs the task on a terminal. */
  readonly tty: boolean;

  readonly imagePullPolicy: ImagePullPolicy;
  /** Time limit of the pull. */
  readonly imagePullTimeoutMs: number;
  /** Login at the image's registry; never written to logs or errors. */
  readonly auth?: RegistryAuth;

  /** Capabilities with the prefix `CAP_`, or `ALL`. Every one is in the plugin's `allow_caps`. */
  readonly capAdd: readonly string[];
  /** Capabilities with the prefix `CAP_`, or `ALL`. */
  readonly capDrop: readonly string[];
  /** Whether the container is privileged. Requires the plugin's `allow_privileged`. */
  readonly privileged: boolean;
  readonly readonlyRootfs: boolean;
  /** Sets no_new_privs: the task's processes gain no privileges through set-user-ID programs. */
  readonly noNewPrivileges: boolean;
  readonly seccompProfile: SeccompProfile;
  /** Name of a profile, or `unconfined`; undefined: the runtime's default. */
  readonly appArmorProfile?: string;
  /** Type of the processes; undefined: the runtime's default. */
  readonly seLinuxType?: string;
  /** The host's namespaces that the task shares. Empty unless the plugin's `allow_privileged` is set. */
  readonly hostNamespaces: readonly HostNamespace[];
  /** Undefined: the runtime's default. */
  readonly cgroupNamespace?: "private" | "host";
  /** Supplementary group IDs. The user and group come from Nomad's `user` of the task. */
  readonly groupAdd: readonly number[];

  /** Mounts from `mounts`, `volumes` and `tmpfs`, parents before children. Nomad's own mounts come apart from these. */
  readonly mounts: readonly TaskMount[];
  readonly devices: readonly TaskDevice[];

  /** The source of the task's network when Nomad passes no network namespace. */
  readonly networkMode?: TaskNetworkMode;
  /** Labels of the ports, from the group's or the task's `network` block, that are published with `network_mode = "bridge"`. */
  readonly ports: readonly string[];
  /** Replaces the DNS settings that Nomad passes, when set. */
  readonly dns?: TaskDns;
  /** Lines added to /etc/hosts. */
  readonly extraHosts: readonly ExtraHost[];

  /** Kernel parameters, for example `net.core.somaxconn`. */
  readonly sysctl: Readonly<Record<string, string>>;
  /** Resource limits by their short name, for example `nofile`. */
  readonly ulimits: readonly Ulimit[];
  /** Size of /dev/shm. */
  readonly shmSizeBytes?: number;
  /** Most processes and threads in the task. */
  readonly pidsLimit?: number;
  /** Limits CPU time to the task's `cpu` instead of only weighing it. */
  readonly cpuHardLimit: boolean;
  /** Period of the CPU limit. */
  readonly cpuPeriodMicros?: number;
  /** Soft limit of the memory. */
  readonly memoryReservationBytes?: number;
  /** Memory and swap together; -1: unlimited swap. */
  readonly memorySwapBytes?: number;
  /** 0 … 100. */
  readonly memorySwappiness?: number;
  /** -1000 … 1000. */
  readonly oomScoreAdj?: number;

  /** Labels put on the container, besides the driver's own. */
  readonly labels: Readonly<Record<string, string>>;
  /** OCI runtime: an absolute path or the name of a shim. One of the plugin's `allow_runtimes`. */
  readonly runtime?: string;
}

/** The condition for pulling the image: if it is not on the host, before each start, or never. */
export type ImagePullPolicy = "missing" | "always" | "never";

export type HostNamespace = "pid" | "ipc";

export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
  /** Host and port; undefined: the registry of the task's image. */
  readonly serverAddress?: string;
}

export type SeccompProfile =
  | { readonly type: "default" }
  | { readonly type: "unconfined" }
  /** Absolute path of a profile on the host. */
  | { readonly type: "file"; readonly path: string };

export type MountPropagation = "private" | "rprivate" | "slave" | "rslave" | "shared" | "rshared";

export type TaskMount =
  | {
      readonly type: "bind";
      /** Absolute path on the host; a path relative in the job lies in the task's directory: see `sourceInTaskDir`. */
      readonly source: string;
      /** Reports whether `source` is relative to the task's directory (`<alloc_dir>/<task>`) and stays in it. */
      readonly sourceInTaskDir: boolean;
      /** Absolute path in the task. */
      readonly target: string;
      readonly readonly: boolean;
      readonly propagation: MountPropagation;
    }
  | {
      readonly type: "volume";
      /** Name of a volume that the driver creates on first use and keeps. */
      readonly source: string;
      readonly target: string;
      readonly readonly: boolean;
    }
  | {
      readonly type: "tmpfs";
      readonly target: string;
      /** Undefined: the kernel's default, half of the memory. */
      readonly sizeBytes?: number;
    };

export interface TaskDevice {
  readonly hostPath: string;
  readonly containerPath: string;
  /** Letters of "r", "w" and "m". */
  readonly permissions: string;
}

/** `none` has loopback only; `bridge` is the driver's own bridge, on which `ports` are published. */
export type TaskNetworkMode = "host" | "none" | "bridge";

export interface TaskDns {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export interface ExtraHost {
  readonly name: string;
  readonly address: string;
}

export interface Ulimit {
  readonly name: string;
  /** -1: unlimited. */
  readonly soft: number;
  readonly hard: number;
}
