import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type HostTool, installMissing } from "../lib/host-tools.ts";
import { type RunOptions, type RunResult, run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { waitFor } from "../lib/wait-for.ts";
import { makeGroups, removeGroups } from "./cgroups.ts";
import { removeDisks } from "./host-disk.ts";
import type { BootOptions, HostDriver } from "./host-driver.ts";
import { ensureHostImage } from "./host-image.ts";
import {
  bridgedNetwork,
  bridgeFor,
  CONTROL_BRIDGE,
  createPort,
  networkName,
  slowInterface,
} from "./lab-network.ts";
import { controlAddress, type LabHost } from "./lab-plan.ts";
import { labPaths } from "./lab-state.ts";
import { launchHost, recallHost, rememberHost } from "./launch-host.ts";
import { copyBySsh, shellLine } from "./ssh-host.ts";
import { ensureBaseDisk, ensureUmlDisk } from "./uml-disk.ts";
import { ensureUmlKernel } from "./uml-kernel.ts";

const UML_TOOLS: readonly HostTool[] = [
  { package: "openssh-client", isThere: () => existsSync("/usr/bin/ssh") },
  { package: "e2fsprogs", isThere: () => existsSync("/sbin/mke2fs") },
];
/** The memory of a host, enough for containerd, an agent and a coordinator, with some pods. */
const MEMORY = "1G";
/**
 * The factor for slow hosts: a host has one processor, and each system call switches between processes of this machine.
 */
const PATIENCE = 4;
const BOOT_LIMIT_MS = 480_000;
const SHUT_DOWN_LIMIT_MS = 240_000;
const EVERY_MS = 100;

/**
 * Makes hosts with user-mode Linux. Each has its own kernel, clock and memory, and needs no virtualization by the
 * processor.
 */
export function umlDriver(lab: string): HostDriver {
  const groupName = `forage-lab-${lab}`;
  const dirOf = ({ name }: LabHost): string => join(labPaths(lab).hosts, name);
  const processFile = (host: LabHost): string => join(dirOf(host), "process.json");
  const consoleFile = (host: LabHost): string => join(dirOf(host), "console.log");
  const keyFile = join(labPaths(lab).dir, "key");
  const isRunning = (host: LabHost): boolean => recallHost(processFile(host)) !== undefined;

  const reach = (host: LabHost, argv: readonly string[], options: readonly string[] = []): string[] => {
    if (!isRunning(host))
      throw new SetupError("NOT_READY", `${host.name} is off`, `sudo hack/lab boot ${host.name}`);
    return [
      ...[`--net=/run/netns/${networkName(lab)}`, "--", "ssh", "-i", keyFile, ...options, ...SSH_OPTIONS],
      ...[`root@${controlAddress(host)}`, shellLine(argv)],
    ];
  };
  const exec = (host: LabHost, argv: readonly string[], options?: RunOptions): Promise<RunResult> =>
    run("nsenter", reach(host, argv), options);
  return {
    ...bridgedNetwork(lab, portOf),
    kind: "uml",
    patience: PATIENCE,
    async prepare(report) {
      await installMissing(UML_TOOLS, { report });
      await ensureBaseDisk((await ensureHostImage(report)).root);
      await ensureUmlKernel(report);
    },
    async boot(host, options) {
      if (isRunning(host)) return;
      const dir = dirOf(host);
      mkdirSync(dir, { recursive: true });
      ensureKey(keyFile);
      const { root: image } = await ensureHostImage(() => {});
      const { packages } = options;
      const disk = await ensureUmlDisk({ dir, image, host, packages, publicKey: `${keyFile}.pub` });
      await removeGroups(groupName, host.name);
      await createPort(lab, portOf(host), `v-${host.name}`.slice(0, 15), bridgeFor(options.reach));
      await createPort(lab, `vm-${host.name}`.slice(0, 15), `w-${host.name}`.slice(0, 15), CONTROL_BRIDGE);
      const kernel = await ensureUmlKernel(() => {});
      const uml = launchHost({
        ...{ network: networkName(lab), groups: makeGroups(groupName, host.name) },
        ...{ argv: umlCommand(kernel, host, dir, disk), console: consoleFile(host) },
      });
      rememberHost(processFile(host), uml);
      await waitUntilUp(host, options, exec, consoleFile(host));
    },
    async shutDown(host) {
      if (!isRunning(host)) return;
      await exec(host, ["systemctl", "poweroff", "--no-block"]);
      await waitFor(() => !isRunning(host), {
        ...{ what: `${host.name} is off`, limitMs: SHUT_DOWN_LIMIT_MS, everyMs: EVERY_MS },
      });
      await removeGroups(groupName, host.name);
    },
    powerOff: (host) => removeGroups(groupName, host.name),
    isRunning: async (host) => isRunning(host),
    exec,
    terminalCommand: (host, argv) => ["nsenter", ...reach(host, argv, process.stdin.isTTY ? ["-t"] : [])],
    copy: (host, from, to) => copyBySsh((argv) => ["nsenter", ...reach(host, argv)], from, to),
    slow: (host, link) => slowInterface((argv, options) => exec(host, argv, options), "vec0", link),
    consoleOf: (host) => (existsSync(consoleFile(host)) ? readFileSync(consoleFile(host), "utf8") : ""),
    async removeAll() {
      await removeGroups(groupName);
      await removeDisks(labPaths(lab).hosts);
    },
  };
}

/** Options without checks of host keys, because hosts are made and removed all the time in a separate network. */
const SSH_OPTIONS = [
  ...["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"],
  ...["-o", "ConnectTimeout=10", "-o", "BatchMode=yes", "-F", "none"],
  // A host without power doesn't end its connections.
  ...["-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=5"],
];

function umlCommand(kernel: string, { name, address }: LabHost, dir: string, disk: string): string[] {
  const octet = Number(address.split(".").at(-1)).toString(16).padStart(2, "0");
  // Hosts of one machine send each other segments of up to 64 KiB. An interface without gro=1 drops all that exceed a packet.
  const nic = (index: number, link: string): string =>
    `vec${index}:transport=raw,ifname=${`${link}-${name}`.slice(0, 15)},depth=64,gro=1,mac=02:00:0a:4d:0${index}:${octet}`;
  return [
    ...[kernel, `mem=${MEMORY}`, `umid=${name}`, `uml_dir=${join(dir, "uml")}`, `ubd0=${disk}`],
    ...["root=/dev/ubda", "rw", "con=null", "con0=null,fd:1", "con1=null", "ssl=null"],
    ...[nic(0, "v"), nic(1, "w"), "systemd.log_color=no", "panic=1"],
    // Without seccomp it traces each system call of its processes, which is several times slower.
    "seccomp=auto",
  ];
}

function portOf({ name }: LabHost): string {
  return `vb-${name}`.slice(0, 15);
}

/** Makes the key pair unless it exists. Synchronous, because hosts that boot in parallel share the key. */
function ensureKey(path: string): void {
  if (existsSync(path)) return;
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path], { stdio: "ignore" });
}

async function waitUntilUp(
  host: LabHost,
  { signal }: BootOptions,
  exec: HostDriver["exec"],
  consolePath: string,
): Promise<void> {
  await waitFor(
    async () => {
      const { stdout } = await exec(host, ["systemctl", "is-system-running", "--wait"], {
        allowFailure: true,
        timeoutMs: BOOT_LIMIT_MS,
      });
      return ["running", "degraded"].includes(stdout.trim());
    },
    {
      ...{ what: `${host.name} has booted`, limitMs: BOOT_LIMIT_MS, everyMs: EVERY_MS },
      ...(signal && { signal }),
      explain: () => readFileSync(consolePath, "utf8").slice(-2_000),
    },
  );
}
