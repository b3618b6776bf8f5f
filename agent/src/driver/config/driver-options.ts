/** The plugin's own configuration: the `config` block of `plugin "forage-nomad-driver"` in Nomad's client configuration. */
export interface DriverOptions {
  /** If false, the driver reports itself as undetected and runs no tasks. */
  readonly enabled: boolean;
  /** Path of containerd's socket. */
  readonly containerdAddress: string;
  /** The containerd namespace of all tasks. */
  readonly containerdNamespace: string;
  /** Path of the nerdctl program. */
  readonly nerdctl: string;
  /** Directory of the CNI plugins, for `network_mode = "bridge"`. */
  readonly cniBinDir: string;
  /** The directory of durable state, which survives a reboot. */
  readonly dataDir: string;
  /** The directory of state that is discarded at a reboot. */
  readonly runDir: string;

  /**
   * Whether tasks may use `privileged`, the host's process and IPC namespaces, unconfined profiles and a negative
   * `oom_score_adj`.
   */
  readonly allowPrivileged: boolean;
  /** Capabilities that a task may add, with the prefix `CAP_`, or `ALL`. */
  readonly allowCaps: readonly string[];
  /** Host devices that a task may use by path. An entry that ends with a slash includes everything below it. */
  readonly allowDevices: readonly string[];
  /** OCI runtimes that a task may use: absolute paths or names of shims. */
  readonly allowRuntimes: readonly string[];

  readonly volumes: {
    /** Whether tasks may mount host paths outside the allocation's directory, and named volumes. */
    readonly enabled: boolean;
  };
  readonly gc: {
    /** Whether DestroyTask removes the task's container; otherwise a stopped container is kept for inspection. */
    readonly container: boolean;
    /** Whether images that no task uses are removed. */
    readonly image: boolean;
    /** The time for which an image stays after its last task has ended. */
    readonly imageDelayMs: number;
  };
  /** Time limit of a pull for tasks that don't set one. */
  readonly imagePullTimeoutMs: number;
  /** A Docker `config.json` with registry logins, for tasks without an `auth` block. */
  readonly authConfigFile?: string;
  /** Labels of Nomad's job that each container gets: a selection of EXTRA_LABELS. */
  readonly extraLabels: readonly ExtraLabel[];
  /** Whether Nomad starts no log collector. The output of tasks is then dropped. */
  readonly disableLogCollection: boolean;
}

/** The part of the plugin's configuration that restricts tasks. */
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
