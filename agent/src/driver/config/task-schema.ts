import type { Option } from "./option.ts";
import { REFUSED_AUTH_OPTIONS, REFUSED_MOUNT_OPTIONS, REFUSED_TASK_OPTIONS } from "./refused-options.ts";

const IMAGE: readonly Option[] = [
  {
    kind: "attribute",
    name: "image",
    type: "string",
    required: true,
    doc: "Image reference, for example `redis:7`.",
  },
  {
    kind: "attribute",
    name: "image_pull_policy",
    type: "string",
    fallback: '"missing"',
    doc: "When to pull: `missing`, `always` or `never`.",
  },
  {
    kind: "attribute",
    name: "image_pull_timeout",
    type: "string",
    fallback: "the plugin's",
    doc: "Time limit of the pull, for example `10m`.",
  },
  {
    kind: "block",
    name: "auth",
    repeated: false,
    doc: "Login at the image's registry. Replaces the plugin's `auth_config`.",
    options: [
      { kind: "attribute", name: "username", type: "string", required: true, doc: "User name." },
      { kind: "attribute", name: "password", type: "string", required: true, doc: "Password or token." },
      {
        kind: "attribute",
        name: "server_address",
        type: "string",
        fallback: "the image's",
        doc: "Registry host, with a port if it is not 443.",
      },
      ...REFUSED_AUTH_OPTIONS,
    ],
  },
];

const PROCESS: readonly Option[] = [
  {
    kind: "attribute",
    name: "entrypoint",
    type: "list(string)",
    doc: "Replaces the image's ENTRYPOINT and drops its CMD.",
  },
  {
    kind: "attribute",
    name: "command",
    type: "string",
    doc: "Replaces the image's CMD, followed by `args`.",
  },
  {
    kind: "attribute",
    name: "args",
    type: "list(string)",
    doc: "Arguments after `command`; without a command they replace the image's CMD.",
  },
  {
    kind: "attribute",
    name: "work_dir",
    type: "string",
    fallback: "the image's",
    doc: "Working directory, an absolute path.",
  },
  {
    kind: "attribute",
    name: "tty",
    type: "bool",
    fallback: "false",
    doc: "Runs the task on a terminal without input; its output is one stream with CRLF.",
  },
  {
    kind: "attribute",
    name: "init",
    type: "bool",
    fallback: "false",
    doc: "Runs an init process as process 1, which forwards signals and reaps zombies. Needs the package `tini` on the host.",
  },
];

const SECURITY: readonly Option[] = [
  {
    kind: "attribute",
    name: "cap_add",
    type: "list(string)",
    doc: "Capabilities to add. Each must be in the plugin's `allow_caps`.",
  },
  {
    kind: "attribute",
    name: "cap_drop",
    type: "list(string)",
    doc: "Capabilities to drop; `all` drops every one that is not added.",
  },
  {
    kind: "attribute",
    name: "privileged",
    type: "bool",
    fallback: "false",
    doc: "Full access to the host. Needs the plugin's `allow_privileged`.",
  },
  {
    kind: "attribute",
    name: "readonly_rootfs",
    type: "bool",
    fallback: "false",
    doc: "Mounts the image read-only.",
  },
  {
    kind: "attribute",
    name: "no_new_privileges",
    type: "bool",
    fallback: "false",
    doc: "Processes gain no privileges through set-user-ID programs.",
  },
  {
    kind: "attribute",
    name: "seccomp_profile",
    type: "string",
    fallback: '"default"',
    doc: "`default`, the absolute path of a profile on the host, or `unconfined`, which needs `allow_privileged`.",
  },
  {
    kind: "attribute",
    name: "apparmor_profile",
    type: "string",
    fallback: "the runtime's default one",
    doc: "Name of a loaded AppArmor profile, or `unconfined`, which needs `allow_privileged`. Refused on a host without AppArmor.",
  },
  {
    kind: "attribute",
    name: "selinux_opts",
    type: "list(string)",
    doc: "One entry `type:TYPE`: the SELinux type of the task's processes. Refused on a host without SELinux.",
  },
  {
    kind: "attribute",
    name: "group_add",
    type: "list(string)",
    doc: "Supplementary group IDs of the task's user.",
  },
];

const NAMESPACES: readonly Option[] = [
  {
    kind: "attribute",
    name: "pid_mode",
    type: "string",
    fallback: '"private"',
    doc: "`private`, or `host`: the task sees all processes of the host. Needs `allow_privileged`.",
  },
  {
    kind: "attribute",
    name: "ipc_mode",
    type: "string",
    fallback: '"private"',
    doc: "`private`, or `host`: the task shares System V IPC and /dev/shm with the host. Needs `allow_privileged`.",
  },
  {
    kind: "attribute",
    name: "cgroupns",
    type: "string",
    fallback: "the runtime's",
    doc: "`private` or `host`: whether the task sees its own cgroup as the root. The default is `private` with cgroup v2.",
  },
];

const STORAGE: readonly Option[] = [
  {
    kind: "block",
    name: "mounts",
    repeated: true,
    doc: "A mount in the task, besides those that Nomad makes.",
    options: [
      {
        kind: "attribute",
        name: "type",
        type: "string",
        fallback: '"bind"',
        doc: "`bind`, `volume` or `tmpfs`.",
      },
      {
        kind: "attribute",
        name: "source",
        type: "string",
        doc: "`bind`: a host path, or a path relative to the task's directory. `volume`: the volume's name.",
      },
      {
        kind: "attribute",
        name: "target",
        type: "string",
        required: true,
        doc: "Absolute path in the task.",
      },
      {
        kind: "attribute",
        name: "readonly",
        type: "bool",
        fallback: "false",
        doc: "Refuses writes. Not with `tmpfs`.",
      },
      {
        kind: "attribute",
        name: "propagation",
        type: "string",
        fallback: '"rprivate"',
        doc: "`bind` only: `private`, `rprivate`, `slave`, `rslave`, `shared` or `rshared`.",
      },
      {
        kind: "attribute",
        name: "size",
        type: "string",
        fallback: "half of the memory",
        doc: "`tmpfs` only: its size, for example `64Mi`.",
      },
      ...REFUSED_MOUNT_OPTIONS,
    ],
  },
  {
    kind: "attribute",
    name: "volumes",
    type: "list(string)",
    doc: "Bind mounts and volumes as `SOURCE:TARGET[:OPTIONS]`; the options are `ro`, `rw` and a propagation mode.",
  },
  {
    kind: "attribute",
    name: "tmpfs",
    type: "list(string)",
    doc: "In-memory file systems as `TARGET[:size=SIZE]`.",
  },
  {
    kind: "attribute",
    name: "devices",
    type: "list(string)",
    doc: "Host devices as `HOST[:TASK[:PERMISSIONS]]`; the permissions are of `rwm`. Each must be in the plugin's `allow_devices`.",
  },
  {
    kind: "attribute",
    name: "shm_size",
    type: "string",
    fallback: "64Mi",
    doc: "Size of /dev/shm, for example `128Mi` or a number of bytes.",
  },
];

const NETWORK: readonly Option[] = [
  {
    kind: "attribute",
    name: "network_mode",
    type: "string",
    fallback: '"host"',
    doc: "`host`, `none` or `bridge`. Only where the group has no network namespace of Nomad's.",
  },
  {
    kind: "attribute",
    name: "ports",
    type: "list(string)",
    doc: 'Labels of ports to publish; with `network_mode = "bridge"`.',
  },
  {
    kind: "attribute",
    name: "hostname",
    type: "string",
    fallback: "Nomad's, else the task's name and allocation",
    doc: "Host name in the task.",
  },
  {
    kind: "block",
    name: "dns",
    repeated: false,
    doc: "Replaces the DNS settings of Nomad's `network` block.",
    options: [
      { kind: "attribute", name: "servers", type: "list(string)", doc: "Addresses of DNS servers." },
      { kind: "attribute", name: "searches", type: "list(string)", doc: "Search domains." },
      {
        kind: "attribute",
        name: "options",
        type: "list(string)",
        doc: "Options of resolv.conf, for example `ndots:2`.",
      },
    ],
  },
  {
    kind: "attribute",
    name: "extra_hosts",
    type: "list(string)",
    doc: "Lines of /etc/hosts as `NAME:ADDRESS`.",
  },
];

const LIMITS: readonly Option[] = [
  { kind: "map", name: "sysctl", doc: 'Kernel parameters, for example `"net.core.somaxconn" = "4096"`.' },
  {
    kind: "map",
    name: "ulimit",
    doc: 'Resource limits as `SOFT[:HARD]`, for example `nofile = "1024:4096"`; `-1` is unlimited. With `locks`, commands that are run in the task keep running when their connection breaks.',
  },
  {
    kind: "attribute",
    name: "pids_limit",
    type: "number",
    fallback: "no limit",
    doc: "Most processes and threads in the task.",
  },
  {
    kind: "attribute",
    name: "cpu_hard_limit",
    type: "bool",
    fallback: "false",
    doc: "Limits the task to its `cpu` instead of only weighing it.",
  },
  {
    kind: "attribute",
    name: "cpu_cfs_period",
    type: "number",
    fallback: "100000",
    doc: "Microseconds of the period for `cpu_hard_limit`, from 1000 to 1000000.",
  },
  {
    kind: "attribute",
    name: "memory_reservation",
    type: "string",
    fallback: "Nomad's `memory`, with `memory_max`",
    doc: "Soft limit of the memory, for example `64Mi`. Below the hard limit.",
  },
  {
    kind: "attribute",
    name: "memory_swap",
    type: "string",
    fallback: "no swap",
    doc: "Memory and swap together, for example `256Mi`, or `-1` for unlimited swap. Needs a memory limit.",
  },
  {
    kind: "attribute",
    name: "memory_swappiness",
    type: "number",
    fallback: "the host's",
    doc: "From 0 to 100: how readily the kernel swaps the task's memory. Refused with cgroup v2, which has no such setting.",
  },
  {
    kind: "attribute",
    name: "oom_score_adj",
    type: "number",
    fallback: "0",
    doc: "From -1000 to 1000: the higher, the earlier the kernel kills the task. Below 0 needs `allow_privileged`.",
  },
];

const LOGGING: readonly Option[] = [
  {
    kind: "block",
    name: "logging",
    repeated: false,
    doc: "Exists for jobs of other drivers: the output of a task goes to Nomad, whose `logs` block has its limits.",
    options: [
      { kind: "attribute", name: "driver", type: "string", fallback: '"nomad"', doc: "`nomad`." },
      {
        kind: "refused",
        name: "options",
        reason: "the output of a task goes to Nomad; set `max_files` and `max_file_size` in its `logs` block",
      },
      {
        kind: "refused",
        name: "config",
        reason: "the output of a task goes to Nomad; set `max_files` and `max_file_size` in its `logs` block",
      },
    ],
  },
];

const CONTAINER: readonly Option[] = [
  { kind: "map", name: "labels", doc: "Labels of the container." },
  {
    kind: "attribute",
    name: "runtime",
    type: "string",
    fallback: "runc",
    doc: "OCI runtime. Must be in the plugin's `allow_runtimes`.",
  },
];

/** The options of a task's `config` block. */
export const TASK_SCHEMA: readonly Option[] = [
  ...IMAGE,
  ...PROCESS,
  ...SECURITY,
  ...NAMESPACES,
  ...STORAGE,
  ...NETWORK,
  ...LIMITS,
  ...LOGGING,
  ...CONTAINER,
  ...REFUSED_TASK_OPTIONS,
];
