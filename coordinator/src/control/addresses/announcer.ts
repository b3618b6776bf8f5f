import { createHash } from "node:crypto";
import type { AnnouncingNode, NodeNetworks } from "./node-networks.ts";

export interface AnnouncedService {
  /** The key of the service. */
  readonly key: string;
  /** The service's load balancer addresses, at most one of each family. */
  readonly ips: readonly string[];
  /** The node that has announced the addresses until now. Empty: no node has. */
  readonly before: string;
}

export interface Announcer {
  /** The name of the node. Empty: no node can announce the addresses. */
  readonly node: string;
  /** Whether no other node could announce the addresses. */
  readonly alone: boolean;
}

/**
 * Returns the node that announces each service's addresses. A node keeps its addresses while it can. An address that has to
 * move goes to the ready node in its network that announces the fewest addresses; a hash of the service's name breaks ties.
 * `others` is the number of other services that each node announces. Pure.
 */
export function chooseAnnouncers(
  services: readonly AnnouncedService[],
  nodes: NodeNetworks,
  others: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, Announcer> {
  const loads = new Map(others);
  const found = new Map<string, Announcer>();
  const waiting: { readonly service: AnnouncedService; readonly able: ReadonlySet<string> }[] = [];
  const settle = ({ key }: AnnouncedService, able: ReadonlySet<string>, node: string): void => {
    found.set(key, { node, alone: able.size === 0 || (able.size === 1 && able.has(node)) });
    if (node !== "") loads.set(node, (loads.get(node) ?? 0) + 1);
  };
  for (const service of services) {
    const able = nodes.ableFor(service.ips);
    if (able.has(service.before) && isHealthyNode(nodes.get(service.before)))
      settle(service, able, service.before);
    else waiting.push({ service, able });
  }
  for (const { service, able } of waiting) {
    const candidates = [...able].flatMap((name) => nodes.get(name) ?? []);
    settle(service, able, choose(service, candidates, loads));
  }
  return found;
}

/** Reports whether the node is ready and not drained, so that it keeps its addresses whatever happens to other nodes. */
export function isHealthyNode(node: AnnouncingNode | undefined): boolean {
  return node?.ready === true && !node.draining;
}

function choose(
  { key, before }: AnnouncedService,
  able: readonly AnnouncingNode[],
  loads: ReadonlyMap<string, number>,
): string {
  const ready = able.filter((node) => node.ready);
  const free = ready.filter((node) => !node.cordoned && !node.draining);
  // A move between nodes that are equally good has no benefit.
  const stays = free.length === 0 && (ready.length === 0 ? able : ready).some(({ name }) => name === before);
  if (stays) return before;
  const candidates = free.length > 0 ? free : ready;
  const loadOf = ({ name }: AnnouncingNode): number => loads.get(name) ?? 0;
  const least = candidates.reduce((load, node) => Math.min(load, loadOf(node)), Number.POSITIVE_INFINITY);
  const draws = candidates
    .filter((node) => loadOf(node) === least)
    .map(({ name }) => ({ name, draw: createHash("sha256").update(`${key} ${name}`).digest("hex") }));
  draws.sort((a, b) => (a.draw < b.draw ? -1 : 1));
  return draws[0]?.name ?? "";
}
