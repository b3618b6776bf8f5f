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
  /** The hardware address. Interfaces without hardware lack it. */
  readonly address?: string;
  readonly mtu: number;
  /** The bridge it is a port of. */
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

/** Makes the bridge with the first addresses of the pod networks and no others, but for those that links give themselves. */
export async function ensureBridge(
  run: RunCommand,
  bridge: string,
  podCidrs: readonly PodCidr[],
  links: readonly Link[],
): Promise<void> {
  const present = links.find((link) => link.ifname === bridge);
  if (present === undefined) {
    // With an address of its own the bridge keeps it; else it takes its lowest port's, which comes and goes.
    await run("ip", ["link", "add", bridge, "address", hardwareAddress(bridge), "type", "bridge"]);
  }
  const wanted = podCidrs.map(({ gateway, prefix }) => `${gateway}/${prefix}`);
  const addresses = (present?.addr_info ?? []).filter(({ scope }) => scope !== "link");
  const found = addresses.map((it) => `${it.local}/${it.prefixlen}`);
  for (const other of found.filter((it) => !wanted.includes(it)))
    await run("ip", ["address", "del", other, "dev", bridge]);
  for (const missing of wanted.filter((it) => !found.includes(it))) {
    const isIpv6 = familyOf(missing) === 6;
    // Hosts that have it switched off for all new links.
    if (isIpv6) await writeFile(`/proc/sys/net/ipv6/conf/${bridge}/disable_ipv6`, "0");
    // The address can't be in use elsewhere, and until duplicate detection has ended no program could listen on it.
    await run("ip", ["address", "add", missing, "dev", bridge, ...(isIpv6 ? ["nodad"] : [])]);
  }
  await run("ip", ["link", "set", bridge, "up"]);
}

/** Rejects a pod network that would take addresses away from a network the host is in already. */
export function assertNoOverlap(bridge: string, podCidr: PodCidr, routes: readonly Route[]): void {
  for (const route of routes) {
    const other = overlapping(podCidr, route.dst);
    if (other === undefined || route.dev === bridge) continue;
    // A wide route that happens to enclose the pod network goes on working for all other addresses.
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

/** The MTU of the link that the default route uses, where it is below what pods have by default. */
export function uplinkMtu(links: readonly Link[], routes: readonly Route[]): number | undefined {
  const device = routes.find((route) => route.dst === "default")?.dev;
  const mtu = links.find((link) => link.ifname === device)?.mtu;
  return mtu !== undefined && mtu < 1_500 ? mtu : undefined;
}

// Locally administered, and the same at each start.
function hardwareAddress(bridge: string): string {
  const digest = createHash("sha256").update(bridge).digest();
  return ["02", ...[...digest.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
}
