import type { Option } from "./option.ts";

function refuse(name: string, reason: string): Option {
  return { kind: "refused", name, reason };
}

/** Task options of other container drivers that this driver refuses, each with its replacement or the reason. */
export const REFUSED_TASK_OPTIONS: readonly Option[] = [
  refuse("auth_soft_fail", "a pull whose login fails never becomes an anonymous one; leave out `auth`"),
  refuse("cwd", "use `work_dir`"),
  refuse("file_limit", 'use `ulimit = { nofile = "…" }`'),
  refuse("force_pull", 'use `image_pull_policy = "always"`'),
  refuse("host_dns", "a task has the host's DNS settings unless `dns` or Nomad's `network` block has others"),
  refuse("host_network", 'use `network_mode = "host"`'),
  refuse("init_path", "the driver uses the host's `tini`; see `init`"),
  refuse("port_map", "use `ports` with labels of the `network` block"),
  refuse("seccomp", "the default profile is always on; use `seccomp_profile` for another one"),
  refuse("security_opt", "use `apparmor_profile`, `no_new_privileges`, `seccomp_profile` or `selinux_opts`"),
  refuse("socket", "all tasks use the plugin's `containerd_address`"),
  refuse("userns", "tasks have the host's user namespace; set the task's `user`"),
  refuse("userns_mode", "tasks have the host's user namespace; set the task's `user`"),
  refuse("uts_mode", "a task has a host name of its own, and the host's name with the host's network"),
  refuse("working_dir", "use `work_dir`"),
];

export const REFUSED_AUTH_OPTIONS: readonly Option[] = [
  refuse(
    "tls_verify",
    "certificates are always verified, except where containerd's `hosts.toml` says otherwise",
  ),
];

export const REFUSED_MOUNT_OPTIONS: readonly Option[] = [
  refuse("options", "use `readonly`, `propagation` and `size`"),
];

/** Plugin options of other container drivers that this driver refuses. */
export const REFUSED_DRIVER_OPTIONS: readonly Option[] = [
  refuse("auth", "use `auth_config`, or the task's `auth`"),
  refuse(
    "client_http_timeout",
    "each call to containerd has a limit of its own; pulls have `image_pull_timeout`",
  ),
  refuse("containerd_runtime", "tasks choose with `runtime` from `allow_runtimes`"),
  refuse("dns_servers", "use the task's `dns` or Nomad's `network` block"),
  refuse("logging", "the output of tasks goes to Nomad; see `disable_log_collection`"),
  refuse("recover_stopped", "tasks of an earlier boot are started again"),
  refuse("socket", "use `containerd_address`"),
  refuse("socket_path", "use `containerd_address`"),
  refuse("stats_interval", "Nomad's `telemetry` block sets the interval"),
];

export const REFUSED_VOLUMES_OPTIONS: readonly Option[] = [
  refuse("selinuxlabel", "the driver does not relabel files; label them on the host"),
];
