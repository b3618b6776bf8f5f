import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { encode } from "@msgpack/msgpack";
import { DriverError } from "../driver-error.ts";
import type { DriverOptions } from "./driver-options.ts";
import { type Option, optionRows } from "./option.ts";
import { readDriverOptions } from "./read-driver-options.ts";
import { readTaskOptions } from "./read-task-options.ts";
import type { TaskOptions } from "./task-options.ts";
import { TASK_SCHEMA } from "./task-schema.ts";

const DEFAULTS = readDriverOptions(new Uint8Array());
const OPEN: DriverOptions = {
  ...DEFAULTS,
  allowPrivileged: true,
  allowCaps: ["ALL"],
  allowDevices: ["/dev/fuse", "/dev/snd/"],
  allowRuntimes: ["/usr/bin/crun"],
  volumes: { enabled: true },
};

function read(config: Readonly<Record<string, unknown>>, policy: DriverOptions = OPEN): TaskOptions {
  return readTaskOptions(encode({ image: "busybox", ...config }), policy);
}

function problemsOf(config: Readonly<Record<string, unknown>>, policy?: DriverOptions): string {
  try {
    read(config, policy);
  } catch (error) {
    assert.ok(error instanceof DriverError && error.code === "INVALID", String(error));
    return error.message;
  }
  return "";
}

/** A value for each option that differs from the option's default. */
const EVERY_OPTION = {
  image: "ghcr.io/acme/web:1.2",
  image_pull_policy: "always",
  image_pull_timeout: "1m30s",
  auth: { username: "u", password: "p", server_address: "https://ghcr.io/v2/" },
  entrypoint: ["/bin/sh", "-c"],
  command: "run",
  args: ["--fast"],
  work_dir: "/srv/",
  init: true,
  tty: true,
  cap_add: ["net_admin"],
  cap_drop: ["all"],
  privileged: false,
  readonly_rootfs: true,
  no_new_privileges: true,
  seccomp_profile: "/etc/seccomp/web.json",
  group_add: ["44"],
  apparmor_profile: "acme-web",
  selinux_opts: ["type:spc_t"],
  pid_mode: "host",
  ipc_mode: "private",
  cgroupns: "private",
  mounts: [
    { type: "tmpfs", target: "/scratch/deep", size: "64m" },
    { type: "bind", source: "local/data", target: "/data", readonly: true, propagation: "rslave" },
    { type: "volume", source: "state", target: "/state" },
  ],
  volumes: ["/srv/www:/www:ro,shared"],
  tmpfs: ["/tmp:size=1048576"],
  devices: ["/dev/fuse", "/dev/snd/timer:/dev/timer:r"],
  shm_size: "128Mi",
  network_mode: "bridge",
  ports: ["http"],
  hostname: "web-1",
  dns: { servers: ["10.0.0.1"], searches: ["example.com"], options: ["ndots:2"] },
  extra_hosts: ["db:10.0.0.9", "db6:[fd00::9]"],
  sysctl: { "net.core.somaxconn": "4096" },
  ulimit: [{ nofile: "1024:4096" }, { core: "-1" }],
  pids_limit: 100,
  cpu_hard_limit: true,
  cpu_cfs_period: 50_000,
  memory_reservation: "32Mi",
  memory_swap: "256m",
  memory_swappiness: 10,
  logging: { driver: "nomad" },
  oom_score_adj: -5,
  labels: { team: "web" },
  runtime: "/usr/bin/crun",
};

const EVERY_VALUE: TaskOptions = {
  image: "ghcr.io/acme/web:1.2",
  imagePullPolicy: "always",
  imagePullTimeoutMs: 90_000,
  auth: { username: "u", password: "p", serverAddress: "ghcr.io" },
  entrypoint: ["/bin/sh", "-c"],
  command: "run",
  args: ["--fast"],
  workDir: "/srv",
  init: true,
  tty: true,
  capAdd: ["CAP_NET_ADMIN"],
  capDrop: ["ALL"],
  privileged: false,
  noNewPrivileges: true,
  readonlyRootfs: true,
  seccompProfile: { type: "file", path: "/etc/seccomp/web.json" },
  groupAdd: [44],
  appArmorProfile: "acme-web",
  seLinuxType: "spc_t",
  hostNamespaces: ["pid"],
  cgroupNamespace: "private",
  runtime: "/usr/bin/crun",
  mounts: [
    {
      type: "bind",
      source: "local/data",
      sourceInTaskDir: true,
      target: "/data",
      readonly: true,
      propagation: "rslave",
    },
    { type: "volume", source: "state", target: "/state", readonly: false },
    {
      type: "bind",
      source: "/srv/www",
      sourceInTaskDir: false,
      target: "/www",
      readonly: true,
      propagation: "shared",
    },
    { type: "tmpfs", target: "/tmp", sizeBytes: 1_048_576 },
    { type: "tmpfs", target: "/scratch/deep", sizeBytes: 64 * 1024 ** 2 },
  ],
  devices: [
    { hostPath: "/dev/fuse", containerPath: "/dev/fuse", permissions: "rwm" },
    { hostPath: "/dev/snd/timer", containerPath: "/dev/timer", permissions: "r" },
  ],
  networkMode: "bridge",
  ports: ["http"],
  hostname: "web-1",
  dns: { servers: ["10.0.0.1"], searches: ["example.com"], options: ["ndots:2"] },
  extraHosts: [
    { name: "db", address: "10.0.0.9" },
    { name: "db6", address: "fd00::9" },
  ],
  sysctl: { "net.core.somaxconn": "4096" },
  ulimits: [
    { name: "nofile", soft: 1024, hard: 4096 },
    { name: "core", soft: -1, hard: -1 },
  ],
  shmSizeBytes: 128 * 1024 ** 2,
  pidsLimit: 100,
  cpuHardLimit: true,
  cpuPeriodMicros: 50_000,
  memoryReservationBytes: 32 * 1024 ** 2,
  memorySwapBytes: 256 * 1024 ** 2,
  memorySwappiness: 10,
  oomScoreAdj: -5,
  labels: { team: "web" },
};

test("reads every option of the schema", () => {
  const names = TASK_SCHEMA.filter(({ kind }) => kind !== "refused").map(({ name }) => name);
  assert.deepEqual(Object.keys(EVERY_OPTION).sort(), names.sort());
  assert.deepEqual(read(EVERY_OPTION), EVERY_VALUE);
});

test("reads null attributes as absent, because Nomad sends null for absent ones", () => {
  const unset = Object.fromEntries(TASK_SCHEMA.map(({ name }) => [name, null]));
  assert.deepEqual(read({ ...unset, image: "busybox" }), read({}));
});

describe("rejects, with the path of the attribute,", () => {
  const cases: Readonly<Record<string, readonly [Readonly<Record<string, unknown>>, string]>> = {
    "an unknown option": [{ imge: "x" }, "config.imge: there is no such option"],
    "an unknown option in a block": [{ dns: { server: [] } }, "config.dns.server: there is no such option"],
    "a missing image": [{ image: null }, "config.image: is required"],
    "what is not an image": [{ image: "oci-archive:///etc" }, 'config.image: "oci-archive:///etc"'],
    "a wrong type": [{ privileged: "yes" }, "config.privileged: must be true or false, and is a string"],
    "a wrong item of a list": [{ args: ["a", 1] }, "config.args[1]: must be a string, and is a number"],
    "an unknown capability": [{ cap_add: ["fly"] }, 'config.cap_add[0]: "fly" is not a Linux capability'],
    "a source that leaves the task's directory": [
      { mounts: [{ source: "../../etc", target: "/x" }] },
      'config.mounts[0].source: must be an absolute path without ".."',
    ],
    "a mount without a target": [{ mounts: [{ source: "/x" }] }, "config.mounts[0].target: is required"],
    "a mount over everything": [{ volumes: ["/:/"] }, "config.volumes[0]: must not be the root"],
    "an option of another mount type": [
      { mounts: [{ type: "tmpfs", target: "/x", propagation: "shared" }] },
      "config.mounts[0].propagation: is for mounts of type bind only",
    ],
    "two mounts at one path": [
      { volumes: ["/a:/x"], tmpfs: ["/x"] },
      'config.mounts: "/x" is mounted more than once',
    ],
    "a sysctl of the host": [
      { sysctl: { "vm.swappiness": "1" } },
      "config.sysctl.vm.swappiness: the parameter",
    ],
    "an unknown limit": [{ ulimit: { files: "1" } }, "config.ulimit.files: there is no such limit"],
    "a soft limit above the hard": [
      { ulimit: { nofile: "9:1" } },
      "config.ulimit.nofile: the soft limit exceeds",
    ],
    "a second line in resolv.conf": [
      { dns: { options: ["a\nnameserver 1.2.3.4"] } },
      "config.dns.options[0]: must be one word",
    ],
    "a host without an address": [{ extra_hosts: ["db"] }, "config.extra_hosts[0]: must be NAME:ADDRESS"],
    "a part of an SELinux label that the runtime does not set": [
      { selinux_opts: ["level:s0:c1"] },
      "config.selinux_opts[0]: must be type:TYPE",
    ],
    "two SELinux types": [{ selinux_opts: ["type:a_t", "type:b_t"] }, "config.selinux_opts: a task has one"],
    "an AppArmor profile that would be an option": [
      { apparmor_profile: "a b" },
      "config.apparmor_profile: must be a profile's name",
    ],
    "an IPC parameter in the host's namespace": [
      { ipc_mode: "host", sysctl: { "kernel.shmmax": "1" } },
      "config.sysctl.kernel.shmmax: the parameter is the host's",
    ],
    "a size of the host's /dev/shm": [{ ipc_mode: "host", shm_size: "1m" }, "config.shm_size: the task has"],
    "another container's namespace": [{ pid_mode: "container:x" }, "config.pid_mode: must be one of"],
    "a period without a limit": [{ cpu_cfs_period: 5_000 }, "config.cpu_cfs_period: has no meaning"],
    "too much swappiness": [{ memory_swappiness: 101 }, "config.memory_swappiness: must be a whole number"],
    "another log driver": [
      { logging: { driver: "journald" } },
      "config.logging.driver: must be one of nomad",
    ],
    "options of a log driver": [
      { logging: { options: [{ tag: "x" }] } },
      "config.logging.options: the output of a task goes to Nomad",
    ],
    "an option of another driver": [{ working_dir: "/x" }, "config.working_dir: use `work_dir`"],
    "an option of another driver in a block": [
      { auth: { username: "u", password: "p", tls_verify: false } },
      "config.auth.tls_verify: certificates are always verified",
    ],
    "a fraction of a process": [{ pids_limit: 1.5 }, "config.pids_limit: must be a whole number"],
    "an endless pull": [{ image_pull_timeout: "9000h" }, "config.image_pull_timeout: must be a duration"],
    "a reserved label": [{ labels: { "forage.dev/pod": "x" } }, 'config.labels."forage.dev/pod": the prefix'],
    "ports without a network of the task's": [
      { network_mode: "none", ports: ["http"] },
      "config.ports: have no meaning",
    ],
  };
  for (const [title, [config, expected]] of Object.entries(cases))
    test(title, () => assert.ok(problemsOf(config).includes(expected), problemsOf(config)));
});

describe("rejects what the plugin's configuration does not allow:", () => {
  const cases: Readonly<Record<string, readonly [Readonly<Record<string, unknown>>, string]>> = {
    privileged: [{ privileged: true }, "config.privileged: the plugin's allow_privileged"],
    unconfined: [{ seccomp_profile: "unconfined" }, "config.seccomp_profile: unconfined needs"],
    capability: [
      { cap_add: ["sys_admin"] },
      "config.cap_add[0]: CAP_SYS_ADMIN is not in the plugin's allow_caps",
    ],
    "all capabilities": [{ cap_add: ["all"] }, "config.cap_add[0]: ALL is not in the plugin's allow_caps"],
    device: [
      { devices: ["/dev/sda"] },
      'config.devices[0]: "/dev/sda" is not in the plugin\'s allow_devices',
    ],
    runtime: [{ runtime: "/bin/sh" }, 'config.runtime: "/bin/sh" is not in the plugin\'s allow_runtimes'],
    "host path": [{ volumes: ["/etc:/x"] }, 'config.mounts: "/etc" needs the plugin\'s volumes'],
    volume: [
      { mounts: [{ type: "volume", source: "v", target: "/x" }] },
      "config.mounts: v needs the plugin's",
    ],
    "unconfined AppArmor": [{ apparmor_profile: "unconfined" }, "config.apparmor_profile: unconfined needs"],
    "the host's processes": [{ pid_mode: "host" }, "config.pid_mode: host needs"],
    "the host's IPC": [{ ipc_mode: "host" }, "config.ipc_mode: host needs"],
    "OOM score": [{ oom_score_adj: -1 }, "config.oom_score_adj: a value below 0"],
  };
  for (const [title, [config, expected]] of Object.entries(cases))
    test(title, () => {
      assert.ok(problemsOf(config, DEFAULTS).includes(expected), problemsOf(config, DEFAULTS));
      const allowed = { ...OPEN, allowDevices: ["/dev/sda"], allowRuntimes: ["/bin/sh"] };
      assert.equal(problemsOf(config, allowed), "");
    });
});

test("allows paths in the task's directory and tmpfs without volumes", () => {
  assert.equal(problemsOf({ volumes: ["local/x:/x", "./local/y:/y"], tmpfs: ["/z"] }, DEFAULTS), "");
});

test("reports all problems at once", () => {
  const problems = problemsOf({ image: "", command: 1, mounts: [{}, { target: "x" }] });
  for (const path of ["image", "command", "mounts[0].target", "mounts[0].source", "mounts[1].target"])
    assert.ok(problems.includes(`config.${path}: `), path);
});

test("never repeats a password in a message", () => {
  const problems = problemsOf({ auth: { username: "u", password: 12345, server_address: 1 } });
  assert.match(problems, /config\.auth\.password: must be a string, and is a number/);
  assert.doesNotMatch(problems, /12345/);
});

describe("rejects configuration that is not a msgpack map:", () => {
  const cases: Readonly<Record<string, Uint8Array>> = {
    "cut off": encode({ image: "busybox" }).slice(0, -2),
    "more than one value": Buffer.concat([encode({ image: "a" }), encode(1)]),
    "a reserved byte": Uint8Array.of(0xc1),
    "an endless length": Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff),
    "the prototype's key": Uint8Array.of(0x81, 0xa9, ...Buffer.from("__proto__"), 0x80),
    "a list": encode(["image"]),
    "more than a mebibyte": new Uint8Array(1024 ** 2 + 1),
  };
  for (const [title, bytes] of Object.entries(cases))
    test(title, () => {
      assert.throws(() => readTaskOptions(bytes, OPEN), { name: "DriverError", code: "INVALID" });
    });
});

test("rejects random bytes with INVALID only", () => {
  // A fixed seed, so that a failure can be reproduced.
  const random = randomOf(1);
  for (let round = 0; round < 2_000; round++) {
    const bytes = Uint8Array.from({ length: random.below(64) }, () => random.below(256));
    assert.throws(() => readTaskOptions(bytes, OPEN), { name: "DriverError", code: "INVALID" });
  }
});

test("every option is described", () => {
  const check = (options: readonly Option[]): void => {
    for (const { path, doc } of optionRows(options)) assert.match(doc, /^\S.*\.$/, path);
  };
  check(TASK_SCHEMA);
});

test("rejects options of other drivers' plugins and names the replacement", () => {
  const read = () => readDriverOptions(encode({ recover_stopped: true, volumes: { selinuxlabel: "z" } }));
  assert.throws(read, /plugin config\.recover_stopped: tasks of an earlier boot/);
  assert.throws(read, /plugin config\.volumes\.selinuxlabel: the driver does not relabel/);
});
