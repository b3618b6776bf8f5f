import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { type Cidr, familyOf, type IpFamily, overlaps, parseCidr } from "@forage/common/ip";
import { NetworkError } from "./network.ts";
import type { PodCidr } from "./pod-cidr.ts";
import type { RunCommand } from "./run-command.ts";

/** An interface as in the output of `ip -json address show`. */
export interface Link {
  readonly ifname: string;
  readonly ifindex?: number;
  /** The hardware address. Undefined for interfaces without hardware. */
  readonly address?: string;
  readonly mtu: number;
  /** The bridge of which the interface is a port. */
  readonly master?: string;
  readonly addr_info: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
    readonly scope?: string;
  }[];
}

/** A route as in the output of `ip -json route show`. */
export interface Route {
  readonly dst: string;
  readonly dev?: string;
  readonly scope?: string;
}

export async function listLinks(
  run: RunCommand,
  selection: readonly string[] = [],
): Promise<readonly Link[]> {
  return JSON.parse((await run("ip", ["-json", "address", "show", ...selection])) || "[]");
}

export async function listRoutes(run: RunCommand, family: IpFamily = 4): Promise<readonly Route[]> {
  return JSON.parse((await run("ip", ["-json", `-${family}`, "route", "show"])) || "[]");
}

/**
 * Creates the bridge with the first address of each pod network, and removes other addresses except link-local ones.
 */
export async function ensureBridge(
  run: RunCommand,
  bridge: string,
  podCidrs: readonly PodCidr[],
  links: readonly Link[],
): Promise<void> {
  const present = links.find((link) => link.ifname === bridge);
  if (present === undefined) {
    // Without an explicit address the bridge uses the one of its lowest port, which changes as pods start and end.
    await run("ip", ["link", "add", bridge, "address", hardwareAddress(bridge), "type", "bridge"]);
  }
  const desired = podCidrs.map(({ gateway, prefix }) => `${gateway}/${prefix}`);
  const addresses = (present?.addr_info ?? []).filter(({ scope }) => scope !== "link");
  const found = addresses.map((it) => `${it.local}/${it.prefixlen}`);
  for (const other of found.filter((it) => !desired.includes(it)))
    await run("ip", ["address", "del", other, "dev", bridge]);
  for (const missing of desired.filter((it) => !found.includes(it))) {
    const isIpv6 = familyOf(missing) === 6;
    // IPv6 may be disabled by default for new links.
    if (isIpv6) await writeFile(`/proc/sys/net/ipv6/conf/${bridge}/disable_ipv6`, "0");
    // Duplicate detection is skipped, because until it has ended no program can listen on the address, and the address
    // can't be in use elsewhere.
    await run("ip", ["address", "add", missing, "dev", bridge, ...(isIpv6 ? ["nodad"] : [])]);
  }
  await run("ip", ["link", "set", bridge, "up"]);
}

/** Rejects a pod network that overlaps a network to which the host already has a route. */
export function assertNoOverlap(bridge: string, podCidr: PodCidr, routes: readonly Route[]): void {
  for (const route of routes) {
    const other = overlapping(podCidr, route.dst);
    if (other === undefined || route.dev === bridge) continue;
    // A wider route that encloses the pod network still works for all other addresses.
    if (other.prefix < podCidr.prefix && route.scope !== "link") continue;
    throw new NetworkError(
      "SETUP_FAILED",
      `the pod network ${podCidr.text} overlaps ${other.text}, which the host reaches by ${route.dev ?? "a route"}: ` +
        "choose another pod CIDR",
      { retryable: false },
    );
  }
}

function overlapping(podCidr: PodCidr, route: string): Cidr | undefined {
  const cidr = parseCidr(route);
  return cidr !== undefined && overlaps(podCidr, cidr) ? cidr : undefined;
}

/** Returns the MTU of the default route's link if it is below the pods' default. */
export function uplinkMtu(links: readonly Link[], routes: readonly Route[]): number | undefined {
  const device = routes.find((route) => route.dst === "default")?.dev;
  const mtu = links.find((link) => link.ifname === device)?.mtu;
  return mtu !== undefined && mtu < 1_500 ? mtu : undefined;
}

// A locally administered address, which is the same at each start.
function hardwareAddress(bridge: string): string {
  const digest = createHash("sha256").update(bridge).digest();
  return ["02", ...[...digest.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
}
