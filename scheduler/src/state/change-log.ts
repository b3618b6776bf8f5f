import type { NodeIndex } from "./node-index.ts";

// A reader that is further behind rebuilds everything. With 5,000 nodes that costs as much as applying the changes.
const REMEMBERED = 8192;

/** Records recently changed nodes, so that caches can apply the changes since their last update. */
export class ChangeLog {
  readonly #ring = new Int32Array(REMEMBERED);
  /** The total number of changes. */
  head = 0;

  push(node: NodeIndex): void {
    this.#ring[this.head++ % REMEMBERED] = node;
  }

  /** Reports whether the changes since `from` are still recorded. */
  reaches(from: number): boolean {
    return this.head - from <= REMEMBERED;
  }

  at(position: number): NodeIndex {
    return this.#ring[position % REMEMBERED] ?? 0;
  }
}
