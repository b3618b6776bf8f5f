import type { NodeIndex } from "./node-index.ts";

// A reader that is further behind than this rebuilds everything. With 5,000 nodes that costs as much as catching up.
const REMEMBERED = 8192;

/** Records lately changed nodes, so that caches can catch up with the changes since their last update. */
export class ChangeLog {
  readonly #ring = new Int32Array(REMEMBERED);
  /** Number of changes ever. */
  head = 0;

  push(node: NodeIndex): void {
    this.#ring[this.head++ % REMEMBERED] = node;
  }

  /** Reports whether changes since `from` are still remembered. */
  reaches(from: number): boolean {
    return this.head - from <= REMEMBERED;
  }

  at(position: number): NodeIndex {
    return this.#ring[position % REMEMBERED] ?? 0;
  }
}
