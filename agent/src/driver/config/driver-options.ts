/** The plugin's own configuration: the `config` block of `plugin "forage-nomad-driver"` in Nomad's client configuration. */
export interface DriverOptions {
  /** False: the driver reports itself as undetected and runs no tasks. */
  readonly enabled: boolean;
  /** Path of containerd's socket. */
  readonly containerdAddress: string;
  /** The containerd namespace of all tasks. */
  readonly containerdNamespace: string;
  /** Path of the nerdctl program. */
  readonly nerdctl: string;
  /** Directory of the CNI plugins, for `network_mode = "bridge"`. */
  readonly cniBinDir: string;
  /** Durable state of the driver; survives a reboot. */
  readonly dataDir: string;
  /** State that ends with a reboot. */
  readonly runDir: string;

  /** Allows `privileged`, the host's process and IPC namespaces, unconfined profiles and a negative `oom_score_adj`. */
  readonly allowPrivileged: boolean;
  /** Capabilities that a task may add, with the prefix `CAP_`, or `ALL`. */
  readonly allowCaps: readonly string[];
  /** Host devices that a task may ask for by path; an entry that ends with a slash stands for everything below it. */
  readonly allowDevices: readonly string[];
  /** OCI runtimes that a task may ask for: absolute paths or names of shims. */
  readonly allowRuntimes: readonly string[];

  readonly volumes: {
    /** Allows mounts of host paths outside the allocation's directory, and named volumes. */
    readonly enabled: boolean;
  };
  readonly gc: {
    /** Removes a task's container in DestroyTask; false keeps a stopped container for inspection. */
    readonly container: boolean;
    /** Removes images that no task uses. */
    readonly image: boolean;
    /** The time for which an image stays after its last task has ended. */
    readonly imageDelayMs: number;
  };
  /** Time limit of a pull, where the task sets none. */
  readonly imagePullTimeoutMs: number;
  /** A Docker `config.json` with registry logins, for tasks without an `auth` block. */
  readonly authConfigFile?: string;
  /** Labels of Nomad's job put on each container: a choice of EXTRA_LABELS. */
  readonly extraLabels: readonly ExtraLabel[];
  /** Makes Nomad start no log collector. Tasks' output is dropped. */
  readonly disableLogCollection: boolean;
}

/** The part of the plugin's configuration that limits what a task may ask for. */
export type TaskPolicy = Pick<
  DriverOptions,
  "allowPrivileged" | "allowCaps" | "allowDevices" | "allowRuntimes" | "volumes" | "imagePullTimeoutMs"
>;

export const EXTRA_LABELS = [
  "job_name",
  "job_id",
  "parent_job_id",
  "task_group_name",
  "task_name",
  "namespace",
  "node_name",
  "node_id",
] as const;
export type ExtraLabel = (typeof EXTRA_LABELS)[number];
