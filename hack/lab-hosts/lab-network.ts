import { existsSync } from "node:fs";
import { type RunOptions, type RunResult, run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";
import { CONTROL_GATEWAY, LAB_GATEWAY, LAB_PREFIX_LENGTH } from "./lab-plan.ts";
import type { SlowLink } from "./lab-state.ts";

/** The bridge of all hosts, and the one of the hosts that are cut off. */
export const BRIDGE = "lab0";
export const CUT_BRIDGE = "lab1";
/** The bridge by which commands reach hosts that have no other way in, also while they are cut off. */
export const CONTROL_BRIDGE = "control0";

export function networkName(lab: string): string {
  return `forage-lab-${lab}`;
}

/** Makes the network namespace of the lab with its bridges, unless it is there. */
export async function createNetwork(lab: string): Promise<void> {
  const name = networkName(lab);
  if (existsSync(`/run/netns/${name}`)) return;
  await run("ip", ["netns", "add", name]);
  const lines = [
    "link set lo up",
    `link add ${BRIDGE} type bridge`,
    `address add ${LAB_GATEWAY}/${LAB_PREFIX_LENGTH} dev ${BRIDGE}`,
    `link set ${BRIDGE} up`,
    `link add ${CUT_BRIDGE} type bridge`,
    `link set ${CUT_BRIDGE} up`,
    `link add ${CONTROL_BRIDGE} type bridge`,
    `address add ${CONTROL_GATEWAY}/${LAB_PREFIX_LENGTH} dev ${CONTROL_BRIDGE}`,
    `link set ${CONTROL_BRIDGE} up`,
  ];
  for (const line of lines) await run("ip", ["-n", name, ...line.split(" ")]);
}

export async function removeNetwork(lab: string): Promise<void> {
  await run("ip", ["netns", "del", networkName(lab)], { allowFailure: true });
}

/** Makes a pair of interfaces, the first connected to the bridge and the second for the host, unless it is there. */
export async function createPort(lab: string, port: string, hostEnd: string, bridge: string): Promise<void> {
  const ip = ["-n", networkName(lab), "link"];
  const add = [...ip, "add", port, "type", "veth", "peer", "name", hostEnd];
  // It outlives its host.
  await run("ip", add, { allowFailure: true });
  await run("ip", [...ip, "set", port, "master", bridge, "up"]);
  await run("ip", [...ip, "set", hostEnd, "up"]);
}

/** Connects a host's port to one of the bridges. The host's own link stays up, as it does behind a broken switch. */
export async function connectPort(lab: string, port: string, bridge: string): Promise<void> {
  await run("ip", ["-n", networkName(lab), "link", "set", port, "master", bridge]);
}

/** Runs the command with which a host delays and drops what it sends through the interface; without a link, it ends that. */
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
