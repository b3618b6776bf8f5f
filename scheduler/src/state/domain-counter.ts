import type { NodeMask } from "./node-column.ts";
import type { NodeIndex } from "./node-index.ts";
import { resize } from "./resize.ts";
import type { Topology } from "./topology.ts";

/** The domains of a topology with at least one node of a mask, and their counters. */
export class DomainSet {
  readonly topology: Topology;
  readonly mask: NodeMask | undefined;
  /** The number of domains with a node of the mask. */
  count = 0;
  readonly counters = new Set<DomainCounter>();
  /** The number of nodes of the mask in each domain. */
  #nodes: Int32Array;
  /** The domain in which a node is counted, or -1. */
  #domain: Int32Array;

  constructor(topology: Topology, mask: NodeMask | undefined, nodeCapacity: number, nodeEnd: number) {
    this.topology = topology;
    this.mask = mask;
    this.#nodes = new Int32Array(topology.domainCapacity);
    this.#domain = new Int32Array(nodeCapacity).fill(-1);
    for (let node = 0; node < nodeEnd; node++) this.update(node);
  }

  /** Returns the domain in which pods of the node count, or -1. */
  domainOf(node: NodeIndex): number {
    return this.#domain[node] ?? -1;
  }

  hasDomain(domain: number): boolean {
    return (this.#nodes[domain] ?? 0) > 0;
  }

  grow(nodeCapacity: number): void {
    this.#domain = resize(this.#domain, new Int32Array(nodeCapacity).fill(-1));
  }

  /** Updates the node's topology and mask. None of its pods may be counted during this call. */
  update(node: NodeIndex): void {
    const { topology, mask } = this;
    const before = this.#domain[node] ?? -1;
    const after = mask === undefined || mask.bits[node] === 1 ? (topology.domain[node] ?? -1) : -1;
    if (topology.domainCapacity > this.#nodes.length) this.#growDomains();
    if (before === after) return;
    this.#domain[node] = after;
    if (before >= 0 && this.#add(before, -1) === 0) {
      this.count--;
      for (const counter of this.counters) counter.dropDomain(before);
    }
    if (after >= 0 && this.#add(after, 1) === 1) {
      this.count++;
      for (const counter of this.counters) counter.addDomain(after);
    }
  }

  #add(domain: number, delta: number): number {
    const nodes = (this.#nodes[domain] ?? 0) + delta;
    this.#nodes[domain] = nodes;
    return nodes;
  }

  #growDomains(): void {
    const { domainCapacity } = this.topology;
    this.#nodes = resize(this.#nodes, new Int32Array(domainCapacity));
    for (const counter of this.counters) counter.grow(domainCapacity);
  }
}

/** A count for each domain of a set, with the total and the minimum. */
export class DomainCounter {
  readonly set: DomainSet;
  counts: Int32Array;
  total = 0;
  /** A counter that grows with each permanent change, by which readers detect changes. Trials don't change it. */
  version = 0;
  /** The minimum over all domains of the set; 0 if there are none. */
  least = 0;
  /** The domains whose count is not 0. Computed on first use. */
  #occupied: Set<number> | undefined;
  /** The number of domains of the set with each count. */
  #histogram = new Int32Array(8);

  constructor(set: DomainSet) {
    this.set = set;
    this.counts = new Int32Array(set.topology.domainCapacity);
    this.#histogram[0] = set.count;
    set.counters.add(this);
  }

  close(): void {
    this.set.counters.delete(this);
  }

  grow(domainCapacity: number): void {
    this.counts = resize(this.counts, new Int32Array(domainCapacity));
  }

  /** Adds to the count of the node's domain. Returns the domain, or -1 if there is none. */
  add(node: NodeIndex, delta: number): number {
    const domain = this.set.domainOf(node);
    if (domain < 0) return domain;
    const before = this.counts[domain] ?? 0;
    this.counts[domain] = before + delta;
    this.total += delta;
    if (this.#occupied !== undefined) {
      if (before + delta === 0) this.#occupied.delete(domain);
      else this.#occupied.add(domain);
    }
    this.#shift(before, -1);
    this.#shift(before + delta, 1);
    this.#settle(before + delta);
    return domain;
  }

  /** Returns the domains whose count is not 0. Maintained from the first call on. */
  occupied(): ReadonlySet<number> {
    if (this.#occupied === undefined) {
      this.#occupied = new Set();
      for (let domain = 0; domain < this.counts.length; domain++) {
        if (this.counts[domain] !== 0) this.#occupied.add(domain);
      }
    }
    return this.#occupied;
  }

  addDomain(domain: number): void {
    this.version++;
    this.counts[domain] = 0;
    this.#shift(0, 1);
    this.#settle(0);
  }

  dropDomain(domain: number): void {
    this.version++;
    this.#shift(this.counts[domain] ?? 0, -1);
    this.#settle(this.least);
  }

  #shift(count: number, delta: number): void {
    if (count >= this.#histogram.length) this.#histogram = resize(this.#histogram, new Int32Array(count * 2));
    this.#histogram[count] = (this.#histogram[count] ?? 0) + delta;
  }

  #settle(candidate: number): void {
    if (candidate < this.least) this.least = candidate;
    if (this.set.count === 0) this.least = 0;
    else while (this.#histogram[this.least] === 0) this.least++;
  }
}
