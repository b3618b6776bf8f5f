import type { NodeSpec } from "../types.ts";
import { DomainSet } from "./domain-counter.ts";
import type { NodeMask, NodeScore } from "./node-column.ts";
import type { NodeIndex } from "./node-index.ts";
import type { NodeTable } from "./node-table.ts";
import { resize } from "./resize.ts";
import { Topology } from "./topology.ts";

/** Caches results that depend only on nodes' specifications. Results of recent queries are updated node by node. */
export class NodeFacts {
  readonly #table: NodeTable;
  readonly #topologies = new Map<string, Topology>();
  readonly #masks = new Map<string, NodeMask>();
  readonly #scores = new Map<string, NodeScore>();
  readonly #sets = new Map<string, DomainSet>();
  #capacity: number;

  constructor(table: NodeTable) {
    this.#table = table;
    this.#capacity = table.capacity;
  }

  topology(key: string): Topology {
    let topology = this.#topologies.get(key);
    if (topology === undefined) {
      topology = new Topology(key, this.#capacity);
      for (let node = 0; node < this.#table.end; node++) topology.set(node, this.#table.specs[node]);
      this.#topologies.set(key, topology);
    }
    return topology;
  }

  mask(key: string, test: (node: NodeSpec) => boolean): NodeMask {
    let mask = this.#masks.get(key);
    if (mask === undefined) {
      mask = { key, test, bits: new Uint8Array(this.#capacity) };
      for (let node = 0; node < this.#table.end; node++) setBit(mask, node, this.#table.specs[node]);
      this.#masks.set(key, mask);
    }
    return mask;
  }

  score(key: string, score: (node: NodeSpec) => number): NodeScore {
    let column = this.#scores.get(key);
    if (column === undefined) {
      column = { score, values: new Int32Array(this.#capacity), nonZero: 0 };
      for (let node = 0; node < this.#table.end; node++) setValue(column, node, this.#table.specs[node]);
      this.#scores.set(key, column);
    }
    return column;
  }

  /** Returns the topology's domains among nodes of the mask, or of all nodes without a mask. */
  domains(topology: Topology, mask?: NodeMask): DomainSet {
    const key = `${topology.key}\0${mask?.key ?? ""}`;
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = new DomainSet(topology, mask, this.#capacity, this.#table.end);
      this.#sets.set(key, set);
    }
    return set;
  }

  /** Applies the node's specification, or its removal if absent. None of its pods may be counted during this call. */
  update(node: NodeIndex): void {
    if (this.#capacity !== this.#table.capacity) this.#grow(this.#table.capacity);
    const spec = this.#table.specs[node];
    for (const topology of this.#topologies.values()) topology.set(node, spec);
    for (const mask of this.#masks.values()) setBit(mask, node, spec);
    for (const score of this.#scores.values()) setValue(score, node, spec);
    for (const set of this.#sets.values()) set.update(node);
  }

  /** The size in words, for the limit of cached results. */
  get cells(): number {
    const { size } = this.#masks;
    return this.#capacity * (size / 4 + this.#scores.size + 2 * this.#sets.size);
  }

  /** Removes everything that no counter in use depends on. */
  forget(): void {
    this.#masks.clear();
    this.#scores.clear();
    for (const [key, set] of this.#sets) if (set.counters.size === 0) this.#sets.delete(key);
    const topologies = new Set([...this.#sets.values()].map((set) => set.topology));
    for (const [key, topology] of this.#topologies)
      if (!topologies.has(topology)) this.#topologies.delete(key);
    for (const { mask } of this.#sets.values()) if (mask !== undefined) this.#masks.set(mask.key, mask);
  }

  #grow(capacity: number): void {
    this.#capacity = capacity;
    for (const topology of this.#topologies.values()) topology.grow(capacity);
    for (const mask of this.#masks.values()) mask.bits = resize(mask.bits, new Uint8Array(capacity));
    for (const score of this.#scores.values()) score.values = resize(score.values, new Int32Array(capacity));
    for (const set of this.#sets.values()) set.grow(capacity);
  }
}

function setBit(mask: NodeMask, node: NodeIndex, spec: NodeSpec | undefined): void {
  mask.bits[node] = spec !== undefined && mask.test(spec) ? 1 : 0;
}

function setValue(column: NodeScore, node: NodeIndex, spec: NodeSpec | undefined): void {
  const value = spec === undefined ? 0 : column.score(spec);
  column.nonZero += (value === 0 ? 0 : 1) - (column.values[node] === 0 ? 0 : 1);
  column.values[node] = value;
}
