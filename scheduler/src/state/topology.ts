import type { NodeSpec } from "../types.ts";
import type { NodeIndex } from "./node-index.ts";
import { resize } from "./resize.ts";

const ZONE = "topology.kubernetes.io/zone";
const HOSTNAME = "kubernetes.io/hostname";
const FIRST_DOMAINS = 8;

/** A topology in which each node is a separate domain, whatever its labels. No label can have this name. */
export const NODE_TOPOLOGY = "\0node";

/**
 * Returns the node's value for a topology key. `zone` and `hostname` mean the full label names if the node has no label
 * with the short name.
 */
export function topologyValue(node: NodeSpec, key: string): string | undefined {
  const literal = node.labels[key];
  if (literal !== undefined) return literal;
  if (key === "zone") return node.labels[ZONE];
  if (key === "hostname") return node.labels[HOSTNAME] ?? node.name;
  return key === NODE_TOPOLOGY ? node.name : undefined;
}

export function isHostnameKey(key: string): boolean {
  return key === HOSTNAME || key === "hostname";
}

/**
 * One topology key over all nodes, with the domain of each node. Domains have dense numbers; a number is reused when
 * its domain is empty.
 */
export class Topology {
  readonly key: string;
  readonly isHostname: boolean;
  readonly isPerNode: boolean;
  /** The domain by node, or -1 if the node lacks the key. */
  domain: Int32Array;
  /** The label values of the domains. */
  readonly values: string[] = [];
  /** One above the highest domain number in use. */
  end = 0;
  /** Called when domain numbers exceed the space that readers have reserved. */
  domainCapacity = FIRST_DOMAINS;
  readonly #domainOf = new Map<string, number>();
  readonly #nodes: Set<NodeIndex>[] = [];
  readonly #spare: number[] = [];

  constructor(key: string, nodeCapacity: number) {
    this.key = key;
    this.isHostname = isHostnameKey(key);
    this.isPerNode = key === NODE_TOPOLOGY;
    this.domain = new Int32Array(nodeCapacity).fill(-1);
  }

  /** The number of domains with a node. */
  get count(): number {
    return this.#domainOf.size;
  }

  nodesOf(domain: number): ReadonlySet<NodeIndex> {
    return this.#nodes[domain] ?? new Set();
  }

  grow(nodeCapacity: number): void {
    this.domain = resize(this.domain, new Int32Array(nodeCapacity).fill(-1));
  }

  set(node: NodeIndex, spec: NodeSpec | undefined): void {
    const value = spec === undefined ? undefined : topologyValue(spec, this.key);
    const before = this.domain[node] ?? -1;
    if (before >= 0 && this.values[before] === value) return;
    if (before >= 0) this.#leave(node, before);
    this.domain[node] = value === undefined ? -1 : this.#enter(node, value);
  }

  #enter(node: NodeIndex, value: string): number {
    let domain = this.#domainOf.get(value);
    if (domain === undefined) {
      domain = this.#spare.pop() ?? this.end++;
      while (domain >= this.domainCapacity) this.domainCapacity *= 2;
      this.#domainOf.set(value, domain);
      this.values[domain] = value;
      this.#nodes[domain] = new Set();
    }
    this.#nodes[domain]?.add(node);
    return domain;
  }

  #leave(node: NodeIndex, domain: number): void {
    const nodes = this.#nodes[domain];
    nodes?.delete(node);
    if (nodes?.size !== 0) return;
    this.#domainOf.delete(this.values[domain] ?? "");
    this.#spare.push(domain);
  }
}
