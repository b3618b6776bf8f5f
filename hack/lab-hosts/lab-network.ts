import { existsSync } from "node:fs";
import { type RunOptions, type RunResult, run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import type { HostDriver, Reach } from "./host-driver.ts";
import { CONTROL_GATEWAY, LAB_GATEWAY, LAB_PREFIX_LENGTH, type LabHost } from "./lab-plan.ts";
import type { SlowLink } from "./lab-state.ts";

/** The bridge of all connected hosts. */
export const BRIDGE = "lab0";
const CUT_BRIDGE = "lab1";
/** The bridge by which commands reach hosts that have no other access, also while they are cut off. */
export const CONTROL_BRIDGE = "control0";

/**
 * Fixed addresses of the bridges. Without one, a bridge uses the lowest address of its ports, which changes when a host
 * is powered off or cut off. Hosts that know the former address could not reach the gateway for a minute, and
 * connections that end meanwhile would stay open here.
 */
const BRIDGE_ADDRESSES = {
  [BRIDGE]: "02:00:0a:4d:00:01",
  [CUT_BRIDGE]: "02:00:0a:4d:02:01",
  [CONTROL_BRIDGE]: "02:00:0a:4d:01:01",
} as const;

export function networkName(lab: string): string {
  return `forage-lab-${lab}`;
}

/** Makes the network namespace of the lab with its bridges, unless it exists. */
async function createNetwork(lab: string): Promise<void> {
  const name = networkName(lab);
  if (existsSync(`/run/netns/${name}`)) return;
  await run("ip", ["netns", "add", name]);
  const lines = [
    "link set lo up",
    `link add ${BRIDGE} address ${BRIDGE_ADDRESSES[BRIDGE]} type bridge`,
    `address add ${LAB_GATEWAY}/${LAB_PREFIX_LENGTH} dev ${BRIDGE}`,
    `link set ${BRIDGE} up`,
    `link add ${CUT_BRIDGE} address ${BRIDGE_ADDRESSES[CUT_BRIDGE]} type bridge`,
    `link set ${CUT_BRIDGE} up`,
    `link add ${CONTROL_BRIDGE} address ${BRIDGE_ADDRESSES[CONTROL_BRIDGE]} type bridge`,
    `address add ${CONTROL_GATEWAY}/${LAB_PREFIX_LENGTH} dev ${CONTROL_BRIDGE}`,
    `link set ${CONTROL_BRIDGE} up`,
  ];
  for (const line of lines) await run("ip", ["-n", name, ...line.split(" ")]);
}

export async function removeNetwork(lab: string): Promise<void> {
  await run("ip", ["netns", "del", networkName(lab)], { allowFailure: true });
}

/**
 * Returns the part of a driver that is the same for all kinds of hosts on the lab's bridges. `portOf` returns the port
 * that leads to a host.
 */
export function bridgedNetwork(
  lab: string,
  portOf: (host: LabHost) => string,
): Pick<HostDriver, "gateway" | "createNetwork" | "besideCommand" | "connect" | "syncPackages"> {
  return {
    gateway: LAB_GATEWAY,
    createNetwork: () => createNetwork(lab),
    besideCommand: (argv) => ["nsenter", `--net=/run/netns/${networkName(lab)}`, "--", ...argv],
    connect: (host, reach) => connectPort(lab, portOf(host), bridgeFor(reach)),
    // The hosts see the directory itself.
    syncPackages: async () => {},
  };
}

/** Returns the bridge of a host. All hosts that are cut off share one, so they can reach each other. */
export function bridgeFor(reach: Reach): string {
  return reach === "all" ? BRIDGE : CUT_BRIDGE;
}

/**
 * Makes a pair of interfaces, unless it exists: the first is connected to the bridge, and the second is for the host.
 */
export async function createPort(lab: string, port: string, hostEnd: string, bridge: string): Promise<void> {
  const ip = ["-n", networkName(lab), "link"];
  const add = [...ip, "add", port, "type", "veth", "peer", "name", hostEnd];
  // The pair outlives its host.
  await run("ip", add, { allowFailure: true });
  await run("ip", [...ip, "set", port, "master", bridge, "up"]);
  await run("ip", [...ip, "set", hostEnd, "up"]);
}

/** Connects a host's port to one of the bridges. The host's own link stays up, as behind a broken switch. */
async function connectPort(lab: string, port: string, bridge: string): Promise<void> {
  await run("ip", ["-n", networkName(lab), "link", "set", port, "master", bridge]);
}

/**
 * Removes the link of a host before its power fails: its kernel must not end the connections of processes that have
 * ended.
 */
export async function removeLink(lab: string, port: string): Promise<void> {
  await run("ip", ["-n", networkName(lab), "link", "delete", port], { allowFailure: true });
}

/**
 * Runs the command by which a host delays and drops packets that it sends through the interface. If `link` is
 * undefined, ends that.
 */
export async function slowInterface(
  exec: (argv: readonly string[], options: RunOptions) => Promise<RunResult>,
  device: string,
  slow: SlowLink | undefined,
): Promise<void> {
  const tc = ["tc", "qdisc"];
  const options = { allowFailure: true };
  await exec([...tc, "del", "dev", device, "root"], options);
  if (slow === undefined) return;
  const netem = ["netem", "delay", `${slow.delayMs}ms`, "loss", `${slow.lossPercent}%`];
  const { exitCode, stderr } = await exec([...tc, "add", "dev", device, "root", ...netem], options);
  if (exitCode === 0) return;
  throw new SetupError(
    "COMMAND_FAILED",
    `the network of the lab can't be slowed down: ${stderr.trim()}`,
    "use a kernel with CONFIG_NET_SCH_NETEM, such as that of --kind uml",
  );
}
