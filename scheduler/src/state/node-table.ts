import { amountOf } from "../quantity/parse-quantity.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { HostPort, NodeSpec } from "../types.ts";
import { grown } from "./grown.ts";
import type { NodeIndex } from "./node-index.ts";
import { Tightness } from "./tightness.ts";

const FIRST_CAPACITY = 16;

// Each resource costs three numbers a node, and names come from whoever writes pods: no fleet has this many kinds of devices.
const RESOURCES_MOST = 256;

/** One resource over all nodes. `free` may be negative: bound pods may exceed what the node has. */
export interface ResourceColumn {
  readonly name: string;
  allocatable: Float64Array;
  free: Float64Array;
  /** 1 / allocatable, 0 where there is none. */
  perUnit: Float64Array;
  /** No node's is larger. It never shrinks: bounds made with it stay bounds. */
  perUnitMost: number;
}

/** Nodes in columns, so that a scan touches little memory. */
export class NodeTable {
  readonly indexOf = new Map<string, NodeIndex>();
  readonly specs: (NodeSpec | undefined)[] = [];
  /** cpu, memory, ephemeral-storage, then extended resources in the order they were first seen. */
  readonly columns: ResourceColumn[] = [];
  readonly cpu: ResourceColumn;
  readonly memory: ResourceColumn;
  readonly storage: ResourceColumn;
  /** From this column on, resources are extended ones. */
  readonly firstExtended = 3;
  /** Ports taken, for nodes where any are. */
  readonly ports = new Map<NodeIndex, HostPort[]>();
  podsAllocatable = new Int32Array(FIRST_CAPACITY);
  podsFree = new Int32Array(FIRST_CAPACITY);
  /** Used amounts as kube-scheduler supposes them for its scores. */
  supposedCpu = new Float64Array(FIRST_CAPACITY);
  supposedMemory = new Float64Array(FIRST_CAPACITY);
  /** Head of the list of the node's pods, -1 for none. */
  firstPod = new Int32Array(FIRST_CAPACITY).fill(-1);
  /** Settles ties in a way that depends on the node's name alone, not on the history of the fleet. */
  tie = new Uint32Array(FIRST_CAPACITY);
  capacity = FIRST_CAPACITY;
  /** One above the highest index in use. */
  end = 0;
  readonly tightness = new Tightness(FIRST_CAPACITY);
  readonly #columnOf = new Map<string, number>();
  readonly #spare: NodeIndex[] = [];

  constructor() {
    this.cpu = this.#addColumn("cpu");
    this.memory = this.#addColumn("memory");
    this.storage = this.#addColumn("ephemeral-storage");
  }

  get count(): number {
    return this.indexOf.size;
  }

  /** The resource's column, made when it is new. @throws SchedulerError `invalid_pod` when there are too many. */
  column(name: string): number {
    const known = this.#columnOf.get(name);
    if (known === undefined) this.#addColumn(name);
    return known ?? this.columns.length - 1;
  }

  /** Puts the node's own data in place; what its pods use stays subtracted. @throws SchedulerError on a bad quantity, before any change. */
  set(spec: NodeSpec): NodeIndex {
    const amounts = readAllocatable(spec);
    for (const resource of amounts.keys()) if (resource !== "pods") this.column(resource);
    let index = this.indexOf.get(spec.name);
    if (index === undefined) {
      index = this.#spare.pop() ?? this.end++;
      if (index >= this.capacity) this.#grow();
      this.indexOf.set(spec.name, index);
      this.tie[index] = hash(spec.name);
    }
    this.specs[index] = spec;
    for (const column of this.columns) {
      const amount = amounts.get(column.name) ?? 0;
      column.free[index] = (column.free[index] ?? 0) + amount - (column.allocatable[index] ?? 0);
      column.allocatable[index] = amount;
      column.perUnit[index] = amount > 0 ? 1 / amount : 0;
      column.perUnitMost = Math.max(column.perUnitMost, column.perUnit[index] ?? 0);
    }
    const pods = Math.min(amounts.get("pods") ?? 0, 2 ** 30);
    this.podsFree[index] = (this.podsFree[index] ?? 0) + pods - (this.podsAllocatable[index] ?? 0);
    this.podsAllocatable[index] = pods;
    this.refile(index);
    return index;
  }

  /** To be called after the node's free cpu or memory changed. */
  refile(index: NodeIndex): void {
    const cpu = (this.cpu.free[index] ?? 0) * (this.cpu.perUnit[index] ?? 0);
    const memory = (this.memory.free[index] ?? 0) * (this.memory.perUnit[index] ?? 0);
    this.tightness.set(index, Math.min(cpu, memory));
  }

  /** The node must hold no pod. */
  remove(index: NodeIndex): void {
    const spec = this.spec(index);
    this.indexOf.delete(spec.name);
    this.specs[index] = undefined;
    for (const column of this.columns) column.free[index] = column.allocatable[index] = 0;
    this.podsFree[index] = this.podsAllocatable[index] = 0;
    this.supposedCpu[index] = this.supposedMemory[index] = 0;
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

  /** True when `a` comes before `b` among nodes of equal score. */
  precedes(a: NodeIndex, b: NodeIndex): boolean {
    const tieA = this.tie[a] ?? 0;
    const tieB = this.tie[b] ?? 0;
    return tieA === tieB ? this.name(a) < this.name(b) : tieA < tieB;
  }

  #addColumn(name: string): ResourceColumn {
    if (this.columns.length >= RESOURCES_MOST) {
      throw new SchedulerError(
        "invalid_pod",
        `more than ${RESOURCES_MOST} different resources, with ${name}`,
      );
    }
    const { capacity } = this;
    const zeros = () => new Float64Array(capacity);
    const column = { name, allocatable: zeros(), free: zeros(), perUnit: zeros(), perUnitMost: 0 };
    this.#columnOf.set(name, this.columns.length);
    this.columns.push(column);
    return column;
  }

  #grow(): void {
    this.capacity *= 2;
    const { capacity } = this;
    for (const column of this.columns) {
      column.allocatable = grown(column.allocatable, new Float64Array(capacity));
      column.free = grown(column.free, new Float64Array(capacity));
      column.perUnit = grown(column.perUnit, new Float64Array(capacity));
    }
    this.podsAllocatable = grown(this.podsAllocatable, new Int32Array(capacity));
    this.podsFree = grown(this.podsFree, new Int32Array(capacity));
    this.supposedCpu = grown(this.supposedCpu, new Float64Array(capacity));
    this.supposedMemory = grown(this.supposedMemory, new Float64Array(capacity));
    this.firstPod = grown(this.firstPod, new Int32Array(capacity).fill(-1));
    this.tie = grown(this.tie, new Uint32Array(capacity));
    this.tightness.grow(capacity);
  }
}

function readAllocatable(spec: NodeSpec): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const [resource, text] of Object.entries(spec.allocatable)) {
    const amount = amountOf(resource, text);
    amounts.set(resource, amount);
  }
  return amounts;
}

// FNV-1a, finished so that names differing in their last character land far apart.
function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
