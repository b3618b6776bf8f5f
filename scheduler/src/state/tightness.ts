import type { NodeIndex } from "./node-index.ts";
import { resize } from "./resize.ts";

/**
 * The number of classes of nodes by the scarcer of their free shares of cpu and memory. Class i contains shares from i
 * to i + 1, divided by this number.
 */
export const TIGHTNESS_CLASSES = 32;

/** Groups nodes coarsely by how full they are, so that a search for the best fit can skip most of a fleet. */
export class Tightness {
  readonly #nodes: NodeIndex[][] = Array.from({ length: TIGHTNESS_CLASSES }, () => []);
  /** The class by node, or -1 for removed nodes. */
  #class: Int8Array;
  /** The position of the node in its class's list. */
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

  /** Sets the node's free share, which may be below 0 or above 1. */
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
