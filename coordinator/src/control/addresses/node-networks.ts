import { ADDRESS_BITS, type IpFamily, parseIp } from "@forage/common/ip";

/** A node that may announce load balancer addresses in the networks that it is connected to. */
export interface AnnouncingNode {
  readonly name: string;
  /** Whether the node is reachable and reports a working network. */
  readonly ready: boolean;
  /** Whether the node is cordoned. A cordoned node gets no new addresses if another node can announce them. */
  readonly cordoned: boolean;
  /** Whether the node is drained, so that its addresses have to move. */
  readonly draining: boolean;
  readonly networks: readonly Network[];
}

/** A subnet that a node is connected to. */
export interface Network {
  /** The same for all notations of the subnet. */
  readonly id: string;
  has(address: string): boolean;
}

/**
 * The limit of cached combinations of networks. It is only exceeded if as many services have addresses in different
 * networks.
 */
const MAX_COMBINATIONS = 1_000;

/** Indexes the nodes that may announce load balancer addresses by the networks that they are connected to. */
export class NodeNetworks {
  readonly #nodes = new Map<string, AnnouncingNode>();
  readonly #networks = new Map<string, { readonly network: Network; readonly names: Set<string> }>();
  /** Caches the names of nodes by combinations of networks. Cleared when a node enters or leaves a network. */
  readonly #combined = new Map<string, ReadonlySet<string>>();

  static of(nodes: Iterable<AnnouncingNode>): NodeNetworks {
    const networks = new NodeNetworks();
    for (const node of nodes) networks.set(node.name, node);
    return networks;
  }

  names(): string[] {
    return [...this.#nodes.keys()];
  }

  get(name: string): AnnouncingNode | undefined {
    return this.#nodes.get(name);
  }

  /** Returns the number of nodes in the network. */
  sizeOf({ id }: Network): number {
    return this.#networks.get(id)?.names.size ?? 0;
  }

  /** Sets the node. Undefined removes it. */
  set(name: string, node: AnnouncingNode | undefined): void {
    const before = this.#nodes.get(name)?.networks ?? [];
    const after = node?.networks ?? [];
    if (node === undefined) this.#nodes.delete(name);
    else this.#nodes.set(name, node);
    const changed = differences(before, after);
    if (changed.length > 0) this.#combined.clear();
    for (const network of changed) {
      const { names } = this.#networks.get(network.id) ?? { names: new Set<string>() };
      if (after.includes(network)) names.add(name);
      else names.delete(name);
      if (names.size === 0) this.#networks.delete(network.id);
      else this.#networks.set(network.id, { network, names });
    }
  }

  /**
   * Returns the nodes that are in the networks of all addresses. If there is none, returns the nodes in the network of at
   * least one address.
   */
  ableFor(ips: readonly string[]): ReadonlySet<string> {
    const networks = ips.map((ip) => [...this.#networks.values()].filter(({ network }) => network.has(ip)));
    const [first] = networks[0] ?? [];
    if (ips.length === 1 && networks[0]?.length === 1 && first !== undefined) return first.names;
    const key = networks.map((of) => of.map(({ network }) => network.id).join(" ")).join("|");
    const known = this.#combined.get(key);
    if (known !== undefined) return known;
    const byIp = networks.map((of) => new Set(of.flatMap(({ names }) => [...names])));
    const [some = new Set<string>(), ...rest] = byIp;
    const all = new Set([...some].filter((name) => rest.every((names) => names.has(name))));
    const able = all.size > 0 ? all : new Set(byIp.flatMap((names) => [...names]));
    if (this.#combined.size >= MAX_COMBINATIONS) this.#combined.clear();
    this.#combined.set(key, able);
    return able;
  }
}

/** Returns the networks that are in only one of the lists. */
export function differences(before: readonly Network[], after: readonly Network[]): Network[] {
  const has = (list: readonly Network[], { id }: Network): boolean => list.some((it) => it.id === id);
  return [
    ...before.filter((network) => !has(after, network)),
    ...after.filter((network) => !has(before, network)),
  ];
}

/** Parses a CIDR. Returns undefined if it is invalid. */
export function parseNetwork(cidr: string): Network | undefined {
  const [address = "", prefixText = "", ...rest] = cidr.split("/");
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0 || !/^\d{1,3}$/.test(prefixText)) return undefined;
  const bits = ADDRESS_BITS[ip.family];
  const shift = BigInt(Math.max(0, bits - Number(prefixText)));
  const network = ip.value >> shift;
  const isOf = (family: IpFamily, value: bigint): boolean =>
    family === ip.family && value >> shift === network;
  return {
    id: `${ip.family}/${network}/${bits - Number(shift)}`,
    has: (text) => {
      const other = parseIp(text);
      return other !== undefined && isOf(other.family, other.value);
    },
  };
}
