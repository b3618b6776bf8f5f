import { familyOf } from "@forage/common/ip";
import { CommandFailed, type RunCommand } from "../network/run-command.ts";
import type { HeldAddress } from "./plan-addresses.ts";

/** The result of a probe: whether another host uses an address. "unknown" if the probe failed. */
export type Claim = "free" | "taken" | "unknown";

/** Adds the address. The kernel removes it after the lease, unless the lease is renewed. */
export async function putAddress(
  run: RunCommand,
  held: HeldAddress,
  leaseSeconds: number | undefined,
): Promise<void> {
  const isIpv6 = familyOf(held.ip) === 6;
  const lease = leaseSeconds === undefined ? "forever" : String(leaseSeconds);
  await run("ip", [
    ...["address", "replace", withPrefix(held.ip), "dev", held.interface],
    // The host's own connections must not use the address as their source.
    ...["valid_lft", lease, "preferred_lft", "0", "noprefixroute"],
    // The previous node may still answer for the address, and duplicate detection would then reject it.
    ...(isIpv6 ? ["nodad"] : []),
  ]);
}

export async function removeAddress(run: RunCommand, held: HeldAddress): Promise<void> {
  await run("ip", ["address", "del", withPrefix(held.ip), "dev", held.interface]);
}

/** Announces to all neighbours that this host has the address. */
export async function announceAddress(run: RunCommand, { ip, interface: name }: HeldAddress): Promise<void> {
  if (familyOf(ip) === 6) {
    await run("ndptool", ["-t", "na", "-U", "-i", name, "-T", ip, "send"]);
    return;
  }
  // Some neighbours process only requests, others only replies.
  for (const how of ["-U", "-A"])
    await run("busybox", ["arping", "-q", how, "-c", "1", "-w", "1", "-I", name, "-s", ip, ip]);
}

/** Probes whether a host with hardware addresses other than this host's uses the address. */
export async function probeAddress(
  run: RunCommand,
  { ip, interface: name }: HeldAddress,
  ownHardware: ReadonlySet<string>,
): Promise<Claim> {
  const said = await (familyOf(ip) === 4 ? probe4(run, ip, name) : probe6(run, ip, name));
  if (said === undefined) return "unknown";
  const other = HARDWARE.exec(said)?.[0].toLowerCase();
  // A host with two interfaces in one network answers its own probe.
  return other === undefined || ownHardware.has(other) ? "free" : "taken";
}

const HARDWARE = /\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b/i;

/**
 * Returns the hardware address that answers for the address or announces it meanwhile. Undefined if the probe could not
 * run.
 */
async function probe4(run: RunCommand, ip: string, name: string): Promise<string | undefined> {
  try {
    await run("busybox", ["arping", "-D", "-c", "2", "-w", "2", "-I", name, ip]);
    return "";
  } catch (error) {
    const lines = error instanceof CommandFailed ? error.stdout.split("\n") : [];
    return lines.find((line) => line.includes(` from ${ip} `));
  }
}

async function probe6(run: RunCommand, ip: string, name: string): Promise<string | undefined> {
  try {
    return await run("ndisc6", ["-1", "-r", "2", "-w", "1000", ip, name]);
  } catch (error) {
    return error instanceof CommandFailed && error.stdout.includes("No response") ? "" : undefined;
  }
}

function withPrefix(ip: string): string {
  return `${ip}/${familyOf(ip) === 4 ? 32 : 128}`;
}
