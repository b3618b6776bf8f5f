import { createHash } from "node:crypto";
import { addressBits, type IpFamily, parseIp } from "./ip-address.ts";

/** A node that may answer for addresses of load balancers on the networks it is in. */
export interface AnnouncingNode {
  readonly name: string;
  /** It is heard of, and says that its network works. */
  readonly ready: boolean;
  /** No new pods, and no new addresses either if there is another. */
  readonly cordoned: boolean;
  /** What it has is to go elsewhere. */
  readonly draining: boolean;
  readonly networks: readonly Network[];
}

/** A subnet that a node is connected to. */
export interface Network {
  has(address: string): boolean;
}

export interface Announced {
  /** Of the service. */
  readonly key: string;
  /** At most one of each family. */
  readonly ips: readonly string[];
  /** The node that has announced them until now; empty: none. */
  readonly before: string;
}

export interface Announcer {
  /** Empty: no node can. */
  readonly node: string;
  /** No other node could. */
  readonly alone: boolean;
}

/** Undefined: it is no CIDR. */
export function parseNetwork(cidr: string): Network | undefined {
  const [address = "", prefixText = "", ...rest] = cidr.split("/");
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0 || !/^\d{1,3}$/.test(prefixText)) return undefined;
  const bits = addressBits[ip.family];
  const shift = BigInt(Math.max(0, bits - Number(prefixText)));
  const network = ip.value >> shift;
  const isOf = (family: IpFamily, value: bigint): boolean =>
    family === ip.family && value >> shift === network;
  return {
    has: (text) => {
      const other = parseIp(text);
      return other !== undefined && isOf(other.family, other.value);
    },
  };
}

/**
 * Pure: which node announces which service's addresses. A node keeps what it has while it can; what has to move goes to the ready
 * node in the addresses' network that has the fewest, among equals to one that the service's name gives.
 */
export function chooseAnnouncers(
  services: readonly Announced[],
  nodes: readonly AnnouncingNode[],
): ReadonlyMap<string, Announcer> {
  const loads = new Map<string, number>();
  const found = new Map<string, Announcer>();
  const waiting: { readonly service: Announced; readonly able: readonly AnnouncingNode[] }[] = [];
  const settle = ({ key }: Announced, able: readonly AnnouncingNode[], node: string): void => {
    found.set(key, { node, alone: able.every(({ name }) => name === node) });
    if (node !== "") loads.set(node, (loads.get(node) ?? 0) + 1);
  };
  for (const service of services) {
    const able = inNetworkOf(service.ips, nodes);
    const before = able.find(({ name }) => name === service.before);
    if (before?.ready === true && !before.draining) settle(service, able, before.name);
    else waiting.push({ service, able });
  }
  for (const { service, able } of waiting) settle(service, able, choose(service, able, loads));
  return found;
}

function choose(
  { key, before }: Announced,
  able: readonly AnnouncingNode[],
  loads: ReadonlyMap<string, number>,
): string {
  const ready = able.filter((node) => node.ready);
  const free = ready.filter((node) => !node.cordoned);
  // Nobody gains by a move between nodes of which none is any better.
  const stays = free.length === 0 && (ready.length === 0 ? able : ready).some(({ name }) => name === before);
  if (stays) return before;
  const candidates = (free.length > 0 ? free : ready).map(({ name }) => ({
    name,
    load: loads.get(name) ?? 0,
    draw: createHash("sha256").update(`${key} ${name}`).digest("hex"),
  }));
  candidates.sort((a, b) => a.load - b.load || (a.draw < b.draw ? -1 : 1));
  return candidates[0]?.name ?? "";
}

/** Nodes that are in the networks of all of the addresses, or where there is none, in that of one of them. */
function inNetworkOf(ips: readonly string[], nodes: readonly AnnouncingNode[]): readonly AnnouncingNode[] {
  const isIn = ({ networks }: AnnouncingNode, ip: string): boolean => networks.some((it) => it.has(ip));
  const all = nodes.filter((node) => ips.every((ip) => isIn(node, ip)));
  return all.length > 0 ? all : nodes.filter((node) => ips.some((ip) => isIn(node, ip)));
}
