import { amountOf } from "../quantity/parse-quantity.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { HostPort, NodeSpec } from "../types.ts";
import type { NodeIndex } from "./node-index.ts";
import { resize } from "./resize.ts";
import { Tightness } from "./tightness.ts";

const FIRST_CAPACITY = 16;

// Each resource costs three numbers per node. No real fleet offers this many kinds of devices.
const RESOURCES_MAX = 256;

/**
 * Device plugins offer a few resources per node. The limit keeps one node from using up the slots that all nodes share.
 */
export const RESOURCES_PER_NODE_MAX = 64;

/** An extended resource that pods request by name. All pods that request it share this object. */
export interface NamedResource {
  readonly name: string;
  /** The resource's column, or -1 while no node offers it. */
  column: number;
}

/** The result of adding or replacing a node. */
export interface NodeChange {
  readonly index: NodeIndex;
  /** Extended resources that are not counted, because the node or the fleet offers too many. */
  readonly left: readonly string[];
  /** New columns: what bound pods use of them still has to be subtracted. */
  readonly fresh: readonly number[];
}

/** One resource over all nodes. `free` may be negative, because bound pods may exceed the node's capacity. */
export interface ResourceColumn {
  /** The resource's name. Empty if the slot is free for another resource. */
  name: string;
  /** The number of nodes that offer it. */
  offers: number;
  allocatable: Float64Array;
  free: Float64Array;
  /** 1 / allocatable, or 0 if the node has none. */
  perUnit: Float64Array;
  /** An upper bound of every node's value. It never decreases, so bounds derived from it stay valid. */
  perUnitMost: number;
}

/** Nodes in columns, so that a scan reads little memory. */
export class NodeTable {
  readonly indexOf = new Map<string, NodeIndex>();
  readonly specs: (NodeSpec | undefined)[] = [];
  /** cpu, memory, ephemeral-storage, then the extended resources that nodes offer. */
  readonly columns: ResourceColumn[] = [];
  readonly cpu: ResourceColumn;
  readonly memory: ResourceColumn;
  readonly storage: ResourceColumn;
  /** The first column of extended resources. */
  readonly firstExtended = 3;
  /** Host ports in use, for nodes that have any. */
  readonly ports = new Map<NodeIndex, HostPort[]>();
  podsAllocatable = new Int32Array(FIRST_CAPACITY);
  podsFree = new Int32Array(FIRST_CAPACITY);
  /** Used amounts with kube-scheduler's assumptions for scores. */
  defaultedCpu = new Float64Array(FIRST_CAPACITY);
  defaultedMemory = new Float64Array(FIRST_CAPACITY);
  /** The head of the list of the node's pods, or -1. */
  firstPod = new Int32Array(FIRST_CAPACITY).fill(-1);
  /** Numbers that order nodes with equal scores. They depend only on the names, not on the fleet's history. */
  tieBreakers = new Uint32Array(FIRST_CAPACITY);
  capacity = FIRST_CAPACITY;
  /** One above the highest index in use. */
  end = 0;
  readonly tightness = new Tightness(FIRST_CAPACITY);
  /** A counter that grows when an extended resource gets or loses its column. */
  columnsVersion = 0;
  readonly #named = new Map<string, NamedResource>();
  readonly #spareColumns: number[] = [];
  readonly #spare: NodeIndex[] = [];

  constructor() {
    this.cpu = this.#addColumn("cpu");
    this.memory = this.#addColumn("memory");
    this.storage = this.#addColumn("ephemeral-storage");
  }

  get count(): number {
    return this.indexOf.size;
  }

  /**
   * Returns the extended resource with this name. Pods never create columns: a resource that no node offers has none.
   */
  named(name: string): NamedResource {
    let resource = this.#named.get(name);
    if (resource === undefined) {
      resource = { name, column: -1 };
      this.#named.set(name, resource);
    }
    return resource;
  }

  /** Removes names that no node offers and no pod uses. */
  forgetNames(used: ReadonlySet<NamedResource>): void {
    for (const [name, resource] of this.#named)
      if (resource.column < 0 && !used.has(resource)) this.#named.delete(name);
  }

  /**
   * Sets the node's own data. The usage of its pods stays subtracted. @throws SchedulerError for an invalid quantity,
   * before any change.
   */
  set(spec: NodeSpec): NodeChange {
    const amounts = readAllocatable(spec);
    const { left, fresh } = this.#makeColumns(spec.name, amounts);
    let index = this.indexOf.get(spec.name);
    if (index === undefined) {
      index = this.#spare.pop() ?? this.end++;
      if (index >= this.capacity) this.#grow();
      this.indexOf.set(spec.name, index);
      this.tieBreakers[index] = hash(spec.name);
    }
    this.specs[index] = spec;
    for (const column of this.columns) {
      const amount = amounts.get(column.name) ?? 0;
      column.offers += (amount > 0 ? 1 : 0) - ((column.allocatable[index] ?? 0) > 0 ? 1 : 0);
      column.free[index] = (column.free[index] ?? 0) + amount - (column.allocatable[index] ?? 0);
      column.allocatable[index] = amount;
      column.perUnit[index] = amount > 0 ? 1 / amount : 0;
      column.perUnitMost = Math.max(column.perUnitMost, column.perUnit[index] ?? 0);
    }
    const pods = Math.min(amounts.get("pods") ?? 0, 2 ** 30);
    this.podsFree[index] = (this.podsFree[index] ?? 0) + pods - (this.podsAllocatable[index] ?? 0);
    this.podsAllocatable[index] = pods;
    this.refile(index);
    this.#releaseColumns();
    return { index, left, fresh };
  }

  /** Must be called after the node's free cpu or memory has changed. */
  refile(index: NodeIndex): void {
    const cpu = (this.cpu.free[index] ?? 0) * (this.cpu.perUnit[index] ?? 0);
    const memory = (this.memory.free[index] ?? 0) * (this.memory.perUnit[index] ?? 0);
    this.tightness.set(index, Math.min(cpu, memory));
  }

  /** Removes the node, which must have no pods. */
  remove(index: NodeIndex): void {
    const spec = this.spec(index);
    this.indexOf.delete(spec.name);
    this.specs[index] = undefined;
    for (const column of this.columns) {
      if ((column.allocatable[index] ?? 0) > 0) column.offers--;
      column.free[index] = column.allocatable[index] = column.perUnit[index] = 0;
    }
    this.#releaseColumns();
    this.podsFree[index] = this.podsAllocatable[index] = 0;
    this.defaultedCpu[index] = this.defaultedMemory[index] = 0;
    this.ports.delete(index);
    this.tightness.delete(index);
    this.#spare.push(index);
  }

  spec(index: NodeIndex): NodeSpec {
    const spec = this.specs[index];
    if (spec === undefined) throw new SchedulerError("unknown_node", `no node at ${index}`);
    return spec;
  }

  name(index: NodeIndex): string {
    return this.spec(index).name;
  }

  /** Reports whether `a` precedes `b` among nodes with equal scores. */
  precedes(a: NodeIndex, b: NodeIndex): boolean {
    const tieA = this.tieBreakers[a] ?? 0;
    const tieB = this.tieBreakers[b] ?? 0;
    return tieA === tieB ? this.name(a) < this.name(b) : tieA < tieB;
  }

  /**
   * Creates columns for resources that the node is the first to offer. Returns those without a slot, and removes them
   * from `amounts`.
   */
  #makeColumns(node: string, amounts: Map<string, number>): Pick<NodeChange, "left" | "fresh"> {
    const left: string[] = [];
    const fresh: number[] = [];
    const index = this.indexOf.get(node);
    let own = 0;
    // Sorted, so that the same report always omits the same resources. Resources with a slot keep it.
    const names = [...amounts.keys()].filter((name) => !isPlain(name) && (amounts.get(name) ?? 0) > 0).sort();
    const columnOf = (name: string): number => this.#named.get(name)?.column ?? -1;
    const has = (name: string): boolean =>
      index !== undefined && (this.columns[columnOf(name)]?.allocatable[index] ?? 0) > 0;
    for (const name of [...names.filter(has), ...names.filter((name) => !has(name))]) {
      const known = columnOf(name) >= 0;
      if (own < RESOURCES_PER_NODE_MAX && (known || this.#offer(name))) {
        own++;
        if (!known) fresh.push(columnOf(name));
        continue;
      }
      amounts.delete(name);
      left.push(name);
    }
    return { left, fresh };
  }

  /** Assigns a column to an extended resource. Returns false if there is no slot. */
  #offer(name: string): boolean {
    const spare = this.#spareColumns.pop();
    if (spare === undefined && this.columns.length >= RESOURCES_MAX) return false;
    const resource = this.named(name);
    if (spare === undefined) this.#addColumn(name);
    const column = this.columns[spare ?? this.columns.length - 1];
    if (column !== undefined) column.name = name;
    resource.column = spare ?? this.columns.length - 1;
    this.columnsVersion++;
    return true;
  }

  /** Releases the columns of extended resources that no node offers any more. */
  #releaseColumns(): void {
    for (let at = this.firstExtended; at < this.columns.length; at++) {
      const column = this.columns[at];
      if (column === undefined || column.name === "" || column.offers > 0) continue;
      this.named(column.name).column = -1;
      column.name = "";
      column.perUnitMost = 0;
      column.free.fill(0);
      column.perUnit.fill(0);
      this.#spareColumns.push(at);
      this.columnsVersion++;
    }
  }

  #addColumn(name: string): ResourceColumn {
    const { capacity } = this;
    const zeros = () => new Float64Array(capacity);
    const column = { name, offers: 0, allocatable: zeros(), free: zeros(), perUnit: zeros(), perUnitMost: 0 };
    this.columns.push(column);
    return column;
  }

  #grow(): void {
    this.capacity *= 2;
    const { capacity } = this;
    for (const column of this.columns) {
      column.allocatable = resize(column.allocatable, new Float64Array(capacity));
      column.free = resize(column.free, new Float64Array(capacity));
      column.perUnit = resize(column.perUnit, new Float64Array(capacity));
    }
    this.podsAllocatable = resize(this.podsAllocatable, new Int32Array(capacity));
    this.podsFree = resize(this.podsFree, new Int32Array(capacity));
    this.defaultedCpu = resize(this.defaultedCpu, new Float64Array(capacity));
    this.defaultedMemory = resize(this.defaultedMemory, new Float64Array(capacity));
    this.firstPod = resize(this.firstPod, new Int32Array(capacity).fill(-1));
    this.tieBreakers = resize(this.tieBreakers, new Uint32Array(capacity));
    this.tightness.grow(capacity);
  }
}

function isPlain(resource: string): boolean {
  return ["cpu", "memory", "ephemeral-storage", "pods"].includes(resource);
}

function readAllocatable(spec: NodeSpec): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const [resource, text] of Object.entries(spec.allocatable)) {
    const amount = amountOf(resource, text);
    amounts.set(resource, amount);
  }
  return amounts;
}

// FNV-1a with a final mix, so that names that differ in their last character are far apart.
function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
