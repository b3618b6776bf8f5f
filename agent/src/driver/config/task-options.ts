/**
 * The driver configuration of one task: the decoded and validated `config` block of a job. A field is `undefined` or
 * empty if the job omits it. Sizes are in bytes and durations in milliseconds.
 */
export interface TaskOptions {
  /** The image's reference as the job spells it. Never empty. */
  readonly image: string;
  /** Replaces the image's ENTRYPOINT and drops its CMD, unless empty. */
  readonly entrypoint: readonly string[];
  /** Replaces the image's CMD, together with `args`: the CMD is `[command, ...args]`. */
  readonly command?: string;
  /** Arguments after `command`. Without a command they replace the image's CMD. */
  readonly args: readonly string[];
  /** Working directory; an absolute path. */
  readonly workDir?: string;
  readonly hostname?: string;
  /** Whether a small init process runs as process 1, which forwards signals and reaps zombies. */
  readonly init: boolean;
  /** Whether the task runs on a terminal. */
  readonly tty: boolean;

  readonly imagePullPolicy: ImagePullPolicy;
  /** Time limit of the pull. */
  readonly imagePullTimeoutMs: number;
  /** Login at the image's registry; never written to logs or errors. */
  readonly auth?: RegistryAuth;

  /** Capabilities with the prefix `CAP_`, or `ALL`. Each is in the plugin's `allow_caps`. */
  readonly capAdd: readonly string[];
  /** Capabilities with the prefix `CAP_`, or `ALL`. */
  readonly capDrop: readonly string[];
  /** Whether the container is privileged. Requires the plugin's `allow_privileged`. */
  readonly privileged: boolean;
  readonly readonlyRootfs: boolean;
  /** Whether no_new_privs is set, so that the task's processes gain no privileges through set-user-ID programs. */
  readonly noNewPrivileges: boolean;
  readonly seccompProfile: SeccompProfile;
  /** The name of a profile, or `unconfined`. Undefined: the runtime's default. */
  readonly appArmorProfile?: string;
  /** The SELinux type of the processes. Undefined: the runtime's default. */
  readonly seLinuxType?: string;
  /** The host's namespaces that the task shares. Empty unless the plugin's `allow_privileged` is set. */
  readonly hostNamespaces: readonly HostNamespace[];
  /** Undefined: the runtime's default. */
  readonly cgroupNamespace?: "private" | "host";
  /** Supplementary group IDs. The user and group come from Nomad's `user` of the task. */
  readonly groupAdd: readonly number[];

  /** Mounts from `mounts`, `volumes` and `tmpfs`, parents before children. Nomad's own mounts are separate. */
  readonly mounts: readonly TaskMount[];
  readonly devices: readonly TaskDevice[];

  /** The source of the task's network when Nomad passes no network namespace. */
  readonly networkMode?: TaskNetworkMode;
  /** Labels of the ports, from the group's or the task's `network` block, that are published with `network_mode = "bridge"`. */
  readonly ports: readonly string[];
  /** Replaces the DNS settings that Nomad passes. Undefined: Nomad's settings. */
  readonly dns?: TaskDns;
  /** Lines added to /etc/hosts. */
  readonly extraHosts: readonly ExtraHost[];

  /** Kernel parameters, for example `net.core.somaxconn`. */
  readonly sysctl: Readonly<Record<string, string>>;
  /** Resource limits by their short name, for example `nofile`. */
  readonly ulimits: readonly Ulimit[];
  /** Size of /dev/shm. */
  readonly shmSizeBytes?: number;
  /** The limit on processes and threads in the task. */
  readonly pidsLimit?: number;
  /** Whether CPU time is limited to the task's `cpu` instead of only weighted by it. */
  readonly cpuHardLimit: boolean;
  /** Period of the CPU limit. */
  readonly cpuPeriodMicros?: number;
  /** Soft limit of the memory. */
  readonly memoryReservationBytes?: number;
  /** The limit of memory and swap together. -1: unlimited swap. */
  readonly memorySwapBytes?: number;
  /** The kernel's readiness to swap the task's memory, from 0 to 100. */
  readonly memorySwappiness?: number;
  /** The adjustment of the OOM score, from -1000 to 1000. */
  readonly oomScoreAdj?: number;

  /** Labels of the container in addition to the driver's own. */
  readonly labels: Readonly<Record<string, string>>;
  /** The OCI runtime: an absolute path or the name of a shim. One of the plugin's `allow_runtimes`. */
  readonly runtime?: string;
}

/** The condition for pulling the image: if it is not on the host, before each start, or never. */
export type ImagePullPolicy = "missing" | "always" | "never";

export type HostNamespace = "pid" | "ipc";

export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
  /** The registry's host and port. Undefined: the registry of the task's image. */
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
      /** Absolute path on the host, or a path relative to the task's directory: see `sourceInTaskDir`. */
      readonly source: string;
      /** Whether `source` is relative to the task's directory (`<alloc_dir>/<task>`) and stays in it. */
      readonly sourceInTaskDir: boolean;
      /** Absolute path in the task. */
      readonly target: string;
      readonly readonly: boolean;
      readonly propagation: MountPropagation;
    }
  | {
      readonly type: "volume";
      /** The name of a volume that the driver creates on first use and keeps. */
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
  /** A combination of "r", "w" and "m". */
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
