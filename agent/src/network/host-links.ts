import { createHash } from "node:crypto";
import { type Ipv4Cidr, overlaps, parseIpv4Cidr } from "./ipv4-cidr.ts";
import { NetworkError } from "./network.ts";
import type { RunCommand } from "./run-command.ts";

/** An interface, as `ip -json address show` tells it. */
export interface Link {
  readonly ifname: string;
  readonly mtu: number;
  /** The bridge it is a port of. */
  readonly master?: string;
  readonly addr_info: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
  }[];
}

/** A route, as `ip -json route show` tells it. */
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

export async function listRoutes(run: RunCommand): Promise<readonly Route[]> {
  return JSON.parse((await run("ip", ["-json", "-4", "route", "show"])) || "[]");
}

/** Makes the bridge with the pod network's first address and no other of IPv4. */
export async function ensureBridge(
  run: RunCommand,
  bridge: string,
  podCidr: Ipv4Cidr,
  links: readonly Link[],
): Promise<void> {
  const present = links.find((link) => link.ifname === bridge);
  if (present === undefined) {
    // With an address of its own the bridge keeps it; else it takes its lowest port's, which comes and goes.
    await run("ip", ["link", "add", bridge, "address", hardwareAddress(bridge), "type", "bridge"]);
  }
  const wanted = `${podCidr.gateway}/${podCidr.prefix}`;
  const addresses = (present?.addr_info ?? []).filter((it) => it.family === "inet");
  const found = addresses.map((it) => `${it.local}/${it.prefixlen}`);
  for (const other of found.filter((it) => it !== wanted))
    await run("ip", ["address", "del", other, "dev", bridge]);
  if (!found.includes(wanted)) await run("ip", ["address", "add", wanted, "dev", bridge]);
  await run("ip", ["link", "set", bridge, "up"]);
}

/** Rejects a pod network that would take addresses away from a network the host is in already. */
export function assertNoOverlap(bridge: string, podCidr: Ipv4Cidr, routes: readonly Route[]): void {
  for (const route of routes) {
    const other = parseIpv4Cidr(route.dst);
    if (other === undefined || route.dev === bridge || !overlaps(podCidr, other)) continue;
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
