import assert from "node:assert/strict";
import { test } from "node:test";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";
import { type RunPlace, runArguments } from "./run-arguments.ts";

const aSpec = (change: Partial<ContainerSpec> = {}): ContainerSpec => ({
  name: "i-uid-web-1",
  labels: {},
  image: "localhost/app:1",
  command: [],
  args: [],
  env: [],
  networkNamespace: "/run/netns/p1",
  hostname: "web",
  binds: [],
  logFile: "/var/log/p/1.log",
  ...change,
});

const aPlace = (change: Partial<RunPlace> = {}): RunPlace => ({
  idFile: "/d/id",
  envFile: undefined,
  inheritedNames: [],
  labels: {},
  knowsHealthcheck: true,
  selinux: true,
  appArmor: true,
  imageUser: "",
  terminalLogger: "/p/terminal logger",
  streamLogger: undefined,
  ownRuntime: undefined,
  ...change,
});

const build = (change: Partial<ContainerSpec> = {}, place: Partial<RunPlace> = {}) =>
  runArguments(aSpec(change), aPlace(place));
const afterDashes = (args: readonly string[]) => args.slice(args.indexOf("--"));

test("builds all arguments of a plain container", () => {
  assert.deepEqual(build(), [
    "run",
    "--detach",
    "--restart=no",
    "--pull=never",
    "--name=i-uid-web-1",
    "--cidfile=/d/id",
    "--network=ns:/run/netns/p1",
    "--hostname=web",
    "--log-driver=file:///var/log/p/1.log",
    "--no-healthcheck",
    "--",
    "localhost/app:1",
    "--",
  ]);
});

for (const [what, change, entrypoint, tail] of [
  ["neither: the image's own", {}, [], []],
  [
    "command: its first word replaces the entry point",
    { command: ["a", "b", "c"] },
    ["--entrypoint=a"],
    ["b", "c"],
  ],
  ["args: behind the image's entry point", { args: ["x", "y"] }, [], ["x", "y"]],
  ["both", { command: ["a", "b"], args: ["x"] }, ["--entrypoint=a"], ["b", "x"]],
  [
    "words like options",
    { command: ["--privileged", "--rm"], args: ["-v=/:/h"] },
    ["--entrypoint=--privileged"],
    ["--rm", "-v=/:/h"],
  ],
  ["a user's own dashes", { args: ["--", "x"] }, [], ["--", "x"]],
  ["empty words", { command: [""], args: [""] }, ["--entrypoint="], [""]],
] as const) {
  test(`sets command and args: ${what}`, () => {
    const args = build(change);
    assert.deepEqual(afterDashes(args), ["--", "localhost/app:1", "--", ...tail]);
    assert.deepEqual(
      args.filter((it, i) => it.startsWith("--entrypoint") && i < args.indexOf("--")),
      entrypoint,
    );
  });
}

test("sets limits without swap and within the kernel's bounds", () => {
  const limits = (change: Partial<ContainerSpec>) => build(change).filter((it) => /^--(cpu|memory)/.test(it));
  assert.deepEqual(limits({ memoryLimitBytes: 1e6 }), ["--memory=1000000", "--memory-swap=1000000"]);
  assert.deepEqual(limits({ cpuLimitMilli: 1 }), ["--cpus=0.010"]);
  assert.deepEqual(limits({ cpuLimitMilli: 2500, cpuShares: 1 }), ["--cpus=2.500", "--cpu-shares=2"]);
  assert.deepEqual(limits({ cpuShares: 1e9 }), ["--cpu-shares=262144"]);
});

test("joins names of variables to their option and never passes values", () => {
  const args = build(
    { env: [{ name: "A", value: "secret" }] },
    { envFile: "/dev/fd/3", inheritedNames: ["--rm", "B"] },
  );
  assert.deepEqual(
    args.filter((it) => it.startsWith("--env")),
    ["--env-file=/dev/fd/3", "--env=--rm", "--env=B"],
  );
  assert.equal(args.join(" ").includes("secret"), false);
});

test("a spec can't override the agent's own labels", () => {
  const args = build({ labels: { mine: "no", "a=b": "c d,e" } }, { labels: { mine: "yes" } });
  assert.deepEqual(
    args.filter((it) => it.startsWith("--label")),
    ["--label=mine=yes", "--label=a=b=c d,e"],
  );
});

test("sets binds, working directory and log file", () => {
  const binds = [
    { source: "/etc/a b", target: "/etc/hosts", readOnly: true },
    { source: "/data", target: "/data", readOnly: false },
  ];
  const args = build({ binds, workingDir: "--help", logFile: "/l/a b%?#.log" }, { knowsHealthcheck: false });
  assert.equal(args.includes("--no-healthcheck"), false);
  assert.ok(args.includes("--mount=type=bind,source=/etc/a b,target=/etc/hosts,readonly"));
  assert.ok(args.includes("--mount=type=bind,source=/data,target=/data"));
  assert.ok(args.includes("--workdir=--help"));
  assert.ok(args.includes("--log-driver=file:///l/a%20b%25%3F%23.log"));
});

for (const [what, change] of [
  ["name like an option", { name: "--rm" }],
  ["name with a path", { name: "../x" }],
  ["image like an option", { image: "--privileged" }],
  ["image that is a file of the host", { image: "oci-archive:///etc/passwd" }],
  ["namespace with options", { networkNamespace: "/run/netns/a,host" }],
  ["mount with options", { binds: [{ source: "/a,bind-propagation=shared", target: "/b", readOnly: true }] }],
  ["mount with a colon", { binds: [{ source: "/a", target: "/b:rw", readOnly: true }] }],
  ["relative mount", { binds: [{ source: "a", target: "/b", readOnly: true }] }],
] as const) {
  test(`rejects a ${what}`, () => {
    assert.throws(
      () => build(change),
      (error) => error instanceof RuntimeError && !error.retryable,
    );
  });
}

test("settings that pods don't have become options", () => {
  const args = build({
    networkNamespace: "none",
    memoryLimitBytes: 1000,
    user: { name: "www:www", supplementalGroups: [] },
    binds: [{ source: "/a", target: "/b", readOnly: true, propagation: "rslave" }],
    tuning: {
      memorySoftLimitBytes: 500,
      memorySwapLimitBytes: 3000,
      cpuset: "0-1,3",
      cpuPeriodMicros: 100_000,
      cpuQuotaMicros: 50_000,
      pidsLimit: 9,
      shmBytes: 4096,
      oomScoreAdjustment: -5,
      ulimits: [
        { name: "nofile", soft: 10, hard: 20 },
        { name: "locks", soft: 10, hard: 20 },
      ],
      sysctls: { "net.core.somaxconn": "16" },
      tmpfs: [{ target: "/t", sizeBytes: 4096 }, { target: "/u" }],
      initProgram: "/usr/bin/tini",
      memorySwappiness: 0,
      hostNamespaces: ["pid", "ipc"],
      cgroupNamespace: "private",
    },
  });
  for (const option of [
    ...["--network=none", "--hostname=web", "--memory=1000", "--memory-swap=3000", "--user=www:www"],
    ...["--mount=type=bind,source=/a,target=/b,bind-propagation=rslave,readonly", "--memory-reservation=500"],
    ...["--cpuset-cpus=0-1,3", "--cpu-period=100000", "--cpu-quota=50000", "--pids-limit=9"],
    ...["--shm-size=4096", "--oom-score-adj=-5", "--ulimit=nofile=10:20", "--ulimit=locks=10:20"],
    ...[
      "--sysctl=net.core.somaxconn=16",
      "--tmpfs=/t:size=4096",
      "--tmpfs=/u",
      "--init",
      "--init-binary=/usr/bin/tini",
    ],
    ...["--memory-swappiness=0", "--pid=host", "--ipc=host", "--cgroupns=private"],
  ])
    assert.ok(args.includes(option), `${option} in ${args.join(" ")}`);
});

test("a swap limit of -1 means unlimited", () => {
  const args = build({ memoryLimitBytes: 1000, tuning: { memorySwapLimitBytes: -1 } });
  assert.ok(args.includes("--memory-swap=-1"), args.join(" "));
});

test("applies an AppArmor profile, and rejects it on hosts that would ignore it", () => {
  const security = {
    ...{ runAsNonRoot: false, readOnlyRootFilesystem: false, privileged: false },
    ...{ allowPrivilegeEscalation: true, capabilities: { add: [], drop: [] } },
    seccomp: { type: "RuntimeDefault" } as const,
  };
  const confined = { security: { ...security, appArmorProfile: "acme-web" } };
  assert.ok(build(confined).includes("--security-opt=apparmor=acme-web"));
  assert.throws(() => build(confined, { appArmor: false }), /acme-web: this host has no AppArmor/);
  const hostile = { security: { ...security, appArmorProfile: "a,seccomp=unconfined" } };
  assert.throws(() => build(hostile), /is not the name of an AppArmor profile/);
});

for (const [what, tuning] of [
  ["a cpuset that is not a list", { cpuset: "0 --privileged" }],
  ["an unknown resource limit", { ulimits: [{ name: "x", soft: 1, hard: 1 }] }],
  ["a sysctl with a line break", { sysctls: { "net.core.somaxconn": "1\n2" } }],
  ["a tmpfs path with options", { tmpfs: [{ target: "/t:exec" }] }],
  ["a number that is not whole", { pidsLimit: 1.5 }],
] as const)
  test(`rejects ${what}`, () => {
    assert.throws(() => build({ tuning }), RuntimeError);
  });
