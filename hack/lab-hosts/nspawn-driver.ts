import { copyFileSync, existsSync, mkdirSync, readFileSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { type HostTool, installMissing } from "../lib/host-tools.ts";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { waitFor } from "../lib/wait-for.ts";
import { makeGroups, removeGroups } from "./cgroups.ts";
import { attachDisk, removeDisks } from "./host-disk.ts";
import { type BootOptions, type HostDriver, PACKAGES_DIR } from "./host-driver.ts";
import { ensureHostImage } from "./host-image.ts";
import { bridgedNetwork, bridgeFor, networkName, removeLink, slowInterface } from "./lab-network.ts";
import type { LabHost } from "./lab-plan.ts";
import { labPaths } from "./lab-state.ts";
import { launchHost, recallHost, rememberHost } from "./launch-host.ts";

const NSPAWN_TOOLS: readonly HostTool[] = [
  { package: "systemd-container", isThere: () => existsSync("/usr/bin/systemd-nspawn") },
];

/** The system calls that containerd, nftables and mounts of hosts need beyond those of a container. */
const SYSTEM_CALLS = "@keyring bpf @module mount perf_event_open";
const HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const BOOT_LIMIT_MS = 120_000;
const SHUT_DOWN_LIMIT_MS = 120_000;
const EVERY_MS = 50;

/** Makes hosts with systemd-nspawn. They boot in a second and share this machine's kernel. */
export function nspawnDriver(lab: string): HostDriver {
  const groupName = `forage-lab-${lab}`;
  const dirOf = ({ name }: LabHost): string => join(labPaths(lab).hosts, name);
  const leaderFile = (host: LabHost): string => join(dirOf(host), "leader.json");
  const consoleFile = (host: LabHost): string => join(dirOf(host), "console.log");

  const leaderOf = (host: LabHost): ProcessIdentity | undefined => recallHost(leaderFile(host));
  const enter = (host: LabHost, argv: readonly string[], path: string): string[] => {
    const leader = leaderOf(host);
    if (leader === undefined)
      throw new SetupError("NOT_READY", `${host.name} is off`, `sudo hack/lab boot ${host.name}`);
    return [
      ...["--target", String(leader.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"],
      ...["--root", "--wdns=/root", "--", "/usr/bin/env", "--ignore-environment"],
      ...[`PATH=${path}`, "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"],
      ...argv,
    ];
  };
  const untilOff = (host: LabHost) => untilEnded(host, () => leaderOf(host));
  const driver: HostDriver = {
    ...bridgedNetwork(lab, portOf),
    kind: "nspawn",
    patience: 1,
    async prepare(report) {
      await installMissing(NSPAWN_TOOLS, { report });
      await ensureHostImage(report);
    },
    async boot(host, options) {
      if (leaderOf(host) !== undefined) return;
      const dir = dirOf(host);
      mkdirSync(dir, { recursive: true });
      const image = await ensureHostImage(() => {});
      const { root, containerd } = await attachDisk(dir, image.root, host);
      // A power failure leaves groups behind, and the kernel removes the link of a former boot late.
      await removeGroups(groupName, host.name);
      await removeLink(lab, portOf(host));
      const groups = makeGroups(groupName, host.name);
      const nspawn = launchHost({
        ...{ network: networkName(lab), groups, console: consoleFile(host) },
        argv: ["systemd-nspawn", ...nspawnOptions(host, options, root, containerd)],
      });
      const explain = (): string => readFileSync(consoleFile(host), "utf8").slice(-2_000);
      const limits = { limitMs: BOOT_LIMIT_MS, everyMs: EVERY_MS, explain };
      const stop = options.signal && { signal: options.signal };
      const leader = await waitFor(() => childOf(nspawn), {
        what: `${host.name} starts`,
        ...limits,
        ...stop,
      });
      rememberHost(leaderFile(host), leader);
      await waitFor(() => isUp(driver, host), { what: `${host.name} has booted`, ...limits, ...stop });
    },
    async shutDown(host) {
      if (leaderOf(host) === undefined) return;
      await driver.exec(host, ["systemctl", "poweroff", "--no-block"]);
      await untilOff(host);
      await removeGroups(groupName, host.name);
    },
    async powerOff(host) {
      await removeLink(lab, portOf(host));
      // When a host's first process ends, the kernel ends all others at once.
      await removeGroups(groupName, host.name);
      // The host would count as running until commands in it have ended, too.
      await untilOff(host);
    },
    isRunning: async (host) => leaderOf(host) !== undefined,
    exec: async (host, argv, options) => run("nsenter", enter(host, argv, HOST_PATH), options),
    terminalCommand: (host, argv) => ["nsenter", ...enter(host, argv, HOST_PATH)],
    async copy(host, from, to) {
      const target = join(dirOf(host), "root", to);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(from, target);
    },
    slow: (host, link) => slowInterface((argv, options) => driver.exec(host, argv, options), "host0", link),
    consoleOf: (host) => (existsSync(consoleFile(host)) ? readFileSync(consoleFile(host), "utf8") : ""),
    async removeAll() {
      await removeGroups(groupName);
      await removeDisks(labPaths(lab).hosts);
    },
  };
  return driver;
}

function untilEnded(host: LabHost, leader: () => ProcessIdentity | undefined): Promise<unknown> {
  const isOff = (): boolean => leader() === undefined;
  return waitFor(isOff, { what: `${host.name} is off`, limitMs: SHUT_DOWN_LIMIT_MS, everyMs: EVERY_MS });
}

function nspawnOptions(
  host: LabHost,
  { reach, packages }: BootOptions,
  root: string,
  containerd: string,
): readonly string[] {
  return [
    ...["--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe", "--link-journal=no"],
    ...["--resolv-conf=off", "--timezone=off", "--settings=no", `--machine=${machineName(host.name)}`],
    ...["--capability=all", `--system-call-filter=${SYSTEM_CALLS}`],
    ...["--private-network", `--network-bridge=${bridgeFor(reach)}`, `--hostname=${host.name}`],
    ...[`--directory=${root}`, `--bind=${containerd}:/var/lib/containerd`],
    `--bind-ro=${packages}:${PACKAGES_DIR}`,
  ];
}

function portOf({ name }: LabHost): string {
  return `vb-${machineName(name)}`;
}

/** Returns a name that fits the 15 bytes of interface names. */
function machineName(name: string): string {
  return name.slice(0, 11);
}

/** Returns nspawn's child that is the host's first process, once it is in a separate process namespace. */
function childOf(nspawn: ProcessIdentity): ProcessIdentity | undefined {
  if (!isAlive(nspawn))
    throw new SetupError("COMMAND_FAILED", "systemd-nspawn has ended", "see the console's log");
  for (const pid of readPids(`/proc/${nspawn.pid}/task/${nspawn.pid}/children`)) {
    const namespace = namespaceOf(pid);
    if (namespace !== undefined && namespace !== namespaceOf(nspawn.pid)) return identify(pid);
  }
  return undefined;
}

async function isUp(driver: HostDriver, host: LabHost): Promise<boolean> {
  const { stdout } = await driver.exec(host, ["systemctl", "is-system-running", "--wait"], {
    allowFailure: true,
    timeoutMs: BOOT_LIMIT_MS,
  });
  // Degraded means that a unit has failed, which the operator has to see, as on every host.
  return ["running", "degraded"].includes(stdout.trim());
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

function readPids(path: string): number[] {
  try {
    return readFileSync(path, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
