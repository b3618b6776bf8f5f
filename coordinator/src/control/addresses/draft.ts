import { createHash } from "node:crypto";
import { familyOf } from "@forage/common/ip";
import type { ServiceAddressRecord, ServiceNodePort } from "@forage/proto/forage/store/v1/store";
import type { ServicePort } from "@forage/proto/forest/v1/forage";
import type { IpRange } from "../../ip/ip-range.ts";
import type { Announcer } from "./announcer.ts";
import { loadBalancerIpsFor } from "./load-balancer-ips.ts";

/** The ranges from which addresses and node ports of services are assigned. */
export interface AddressRanges {
  /** One range for each IP family in which services have virtual IPs. */
  readonly virtualIps: readonly IpRange[];
  readonly loadBalancerIps: readonly IpRange[];
  readonly nodePorts: { readonly first: number; readonly last: number };
}

/** An existing service, as far as address assignment depends on it. */
export interface AddressedService {
  readonly namespace: string;
  readonly name: string;
  /** "ClusterIP", "NodePort", "LoadBalancer" or "Headless". */
  readonly type: string;
  readonly ports: readonly ServicePort[];
  /** The load balancer addresses that the service requests, at most one for each family. */
  readonly loadBalancerIps: readonly string[];
}

export type AddressStep =
  | { readonly type: "write"; readonly record: ServiceAddressRecord }
  /** The reservation has expired. */
  | { readonly type: "forget"; readonly namespace: string; readonly name: string }
  /** No address or port is left, or another service has the requested one. */
  | { readonly type: "refuse"; readonly namespace: string; readonly name: string; readonly why: string };

/** The addresses and ports that are in use or reserved. */
export class UsedAddresses {
  /** The owner of each address as `namespace/name`, by address. */
  readonly #ips = new Map<string, string>();
  /** The owner of each node port as `namespace/name`, by `port/protocol`. */
  readonly nodePorts = new Map<string, string>();
  /** The nodes that have an address of their own, by address. */
  readonly #hosts = new Map<string, Set<string>>();
  readonly #addressesOfNode = new Map<string, readonly string[]>();

  /** Returns the names of nodes that have addresses of their own. */
  nodes(): string[] {
    return [...this.#addressesOfNode.keys()];
  }

  /** Sets the node's own addresses. Returns true if an address became free. */
  setHost(node: string, addresses: readonly string[]): boolean {
    const before = this.#addressesOfNode.get(node) ?? [];
    const gone = before.filter((ip) => !addresses.includes(ip));
    for (const ip of gone) {
      const owners = this.#hosts.get(ip);
      owners?.delete(node);
      if (owners?.size === 0) this.#hosts.delete(ip);
    }
    for (const ip of addresses) this.#hosts.set(ip, (this.#hosts.get(ip) ?? new Set()).add(node));
    if (addresses.length === 0) this.#addressesOfNode.delete(node);
    else this.#addressesOfNode.set(node, addresses);
    return gone.length > 0;
  }

  /** The upper bound of the number of used addresses. An address of both a service and a node counts twice. */
  get size(): number {
    return this.#ips.size + this.#hosts.size;
  }

  has(ip: string): boolean {
    return this.#ips.has(ip) || this.#hosts.has(ip);
  }

  add({ namespace, name, virtualIps, loadBalancerIps, nodePorts }: ServiceAddressRecord): void {
    const owner = `${namespace}/${name}`;
    for (const ip of [...virtualIps, ...loadBalancerIps]) this.#ips.set(ip, owner);
    for (const { nodePort, protocol } of nodePorts) this.nodePorts.set(`${nodePort}/${protocol}`, owner);
  }

  delete({ namespace, name, virtualIps, loadBalancerIps, nodePorts }: ServiceAddressRecord): void {
    const owner = `${namespace}/${name}`;
    for (const ip of [...virtualIps, ...loadBalancerIps])
      if (this.#ips.get(ip) === owner) this.#ips.delete(ip);
    for (const { nodePort, protocol } of nodePorts) {
      const key = `${nodePort}/${protocol}`;
      if (this.nodePorts.get(key) === owner) this.nodePorts.delete(key);
    }
  }

  /** Returns another owner of the address, such as `service shop/web` or `node a1`. Undefined: the address is free, or `own` has it. */
  ownerOf(ip: string, own: string): string | undefined {
    const owner = this.#ips.get(ip);
    if (owner !== undefined) return owner === own ? undefined : `service ${owner}`;
    const [node] = this.#hosts.get(ip) ?? [];
    return node === undefined ? undefined : `node ${node}`;
  }
}

/** A service's addresses before the announcing nodes are chosen. */
export interface Draft {
  readonly key: string;
  readonly before: ServiceAddressRecord | undefined;
  readonly record: ServiceAddressRecord;
  readonly problems: readonly string[];
}

export function draftOf(
  service: AddressedService,
  before: ServiceAddressRecord | undefined,
  taken: UsedAddresses,
  input: AddressRanges,
): Draft {
  const { namespace, name } = service;
  const key = `${namespace}/${name}`;
  const seed = seedOf(key);
  const virtualIps = input.virtualIps.flatMap(
    (range) =>
      // An address outside the range was assigned before the operator changed the range, and is not routed any more.
      before?.virtualIps.find((ip) => range.has(ip)) ?? freeIp(range, seed, taken) ?? [],
  );
  const noIp = input.virtualIps
    .filter(({ family }) => !virtualIps.some((ip) => familyOf(ip) === family))
    .map(({ text }) => `no virtual IP is left in ${text}`);
  const { nodePorts, problems } = nodePortsFor(service, before, taken, input);
  const balanced =
    service.type === "LoadBalancer"
      ? loadBalancerIpsFor(
          { requested: service.loadBalancerIps, before: before?.loadBalancerIps ?? [], seed },
          input.loadBalancerIps,
          (it) => taken.ownerOf(it, key),
        )
      : { ips: [], problems: [] };
  const record: ServiceAddressRecord = {
    namespace,
    name,
    virtualIps,
    nodePorts,
    releasedAt: undefined,
    loadBalancerIps: [...balanced.ips],
    announcedBy: before?.announcedBy ?? "",
    announcedAlone: false,
  };
  taken.add(record);
  return { key, before, record, problems: [...noIp, ...problems, ...balanced.problems] };
}

export function stepsOf(
  { before, record, problems }: Draft,
  announcer: Announcer | undefined,
): AddressStep[] {
  const { namespace, name, loadBalancerIps } = record;
  const refuse = (why: string): AddressStep => ({ type: "refuse", namespace, name, why });
  const steps = problems.map(refuse);
  const next = {
    ...record,
    announcedBy: announcer?.node ?? "",
    announcedAlone: announcer !== undefined && announcer.node !== "" && announcer.alone,
  };
  if (announcer?.node === "")
    steps.push(refuse(`no node can announce ${loadBalancerIps.join(" and ")}: ${NO_ANNOUNCER}`));
  if (before === undefined || !sameRecord(before, next)) steps.push({ type: "write", record: next });
  return steps;
}

const NO_ANNOUNCER =
  "no ready node is in its network (for networks that agents can't detect, set loadBalancer.interface in their configuration)";

function nodePortsFor(
  { namespace, name, type, ports }: AddressedService,
  record: ServiceAddressRecord | undefined,
  taken: UsedAddresses,
  { nodePorts: { first, last } }: AddressRanges,
): { readonly nodePorts: ServiceNodePort[]; readonly problems: readonly string[] } {
  const problems: string[] = [];
  if (type !== "NodePort" && type !== "LoadBalancer") return { nodePorts: [], problems };
  const own = `${namespace}/${name}`;
  const size = last - first + 1;
  const used = new Set<string>();
  const free = (port: number, protocol: string): boolean => {
    const owner = taken.nodePorts.get(`${port}/${protocol}`);
    return (owner === undefined || owner === own) && !used.has(`${port}/${protocol}`);
  };
  const nodePorts = ports.flatMap(({ port, protocol: given, nodePort: requested }): ServiceNodePort[] => {
    // Load balancers have addresses of their own, so their ports get a node port only on request.
    if (type === "LoadBalancer" && requested === 0) return [];
    const protocol = given === "" ? "TCP" : given;
    const known = record?.nodePorts.find((it) => it.port === port && it.protocol === protocol)?.nodePort;
    const before = known !== undefined && known >= first && known <= last ? known : undefined;
    const seed = seedOf(`${own}/${port}/${protocol}`);
    const candidates =
      requested !== 0
        ? [requested]
        : [...(before === undefined ? [] : [before]), ...around(seed, size, first)];
    const nodePort = candidates.find((candidate) => free(candidate, protocol));
    if (nodePort === undefined) {
      problems.push(
        requested === 0
          ? `no node port is left in ${first}-${last}`
          : `node port ${requested}/${protocol} belongs to service ${taken.nodePorts.get(`${requested}/${protocol}`)}`,
      );
      return [];
    }
    used.add(`${nodePort}/${protocol}`);
    taken.nodePorts.set(`${nodePort}/${protocol}`, own);
    return [{ port, protocol, nodePort }];
  });
  return { nodePorts, problems };
}

function* around(seed: number, size: number, first: number): Generator<number> {
  for (let step = 0; step < size; step++) yield first + ((seed + step) % size);
}

/**
 * Returns a free address of the range. The search starts at a position derived from the service's name, so that a service
 * that is deleted and created again probably gets the same address.
 */
function freeIp(range: IpRange, seed: number, taken: UsedAddresses): string | undefined {
  // Among one more address than are in use, at least one is free. The number of tries must be bounded because IPv6 ranges
  // are too large to search.
  const tries = Math.min(range.size, taken.size + 1);
  for (let step = 0; step < tries; step++) {
    const ip = range.at((seed + step) % range.size);
    if (!taken.has(ip)) return ip;
  }
  return undefined;
}

function seedOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}

function sameRecord(a: ServiceAddressRecord, b: ServiceAddressRecord): boolean {
  const text = ({ releasedAt, ...rest }: ServiceAddressRecord): string =>
    JSON.stringify([
      rest.virtualIps,
      rest.nodePorts,
      rest.loadBalancerIps,
      rest.announcedBy,
      rest.announcedAlone,
      releasedAt !== undefined,
    ]);
  return text(a) === text(b);
}
