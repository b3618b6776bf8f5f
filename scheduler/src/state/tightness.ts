import type { NodeIndex } from "./node-index.ts";
import { resize } from "./resize.ts";

/** Classes of nodes by the scarcer of their free shares of cpu and memory: class i holds shares from i to i + 1 of this many. */
export const TIGHTNESS_CLASSES = 32;

/** Sorts nodes by how full they are, coarsely, so that a search for the best fit may skip most of a fleet. */
export class Tightness {
  readonly #nodes: NodeIndex[][] = Array.from({ length: TIGHTNESS_CLASSES }, () => []);
  /** Class by node, -1 for nodes that are not there. */
  #class: Int8Array;
  /** Place of the node in its class's list. */
  #at: Int32Array;

  constructor(capacity: number) {
    this.#class = new Int8Array(capacity).fill(-1);
    this.#at = new Int32Array(capacity);
  }

  nodes(tightnessClass: number): readonly NodeIndex[] {
    return this.#nodes[tightnessClass] ?? [];
  }

  grow(capacity: number): void {
    this.#class = resize(this.#class, new Int8Array(capacity).fill(-1));
    this.#at = resize(this.#at, new Int32Array(capacity));
  }

  /** Files the node under its free share, which may be below 0 or above 1. */
  set(node: NodeIndex, freeShare: number): void {
    const scaled = Math.floor(freeShare * TIGHTNESS_CLASSES);
    const after = scaled < 0 ? 0 : scaled >= TIGHTNESS_CLASSES ? TIGHTNESS_CLASSES - 1 : scaled;
    if (this.#class[node] === after) return;
    this.delete(node);
    const list = this.#nodes[after];
    if (list === undefined) return;
    this.#class[node] = after;
    this.#at[node] = list.length;
    list.push(node);
  }

  delete(node: NodeIndex): void {
    const list = this.#nodes[this.#class[node] ?? -1];
    if (list === undefined) return;
    const last = list.pop();
    const at = this.#at[node] ?? 0;
    if (last !== undefined && last !== node) {
      list[at] = last;
      this.#at[last] = at;
    }
    this.#class[node] = -1;
  }
}
