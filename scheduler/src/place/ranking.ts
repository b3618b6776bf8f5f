import type { FleetState } from "../state/fleet-state.ts";

/** Orders the nodes of one group, best first: a heap in which outdated entries remain until they reach the top. */
export class Ranking {
  readonly key: string;
  /** The number of nodes in the group. */
  population = 0;
  readonly #nodes: number[] = [];
  readonly #local: number[] = [];

  constructor(key: string) {
    this.key = key;
  }

  get size(): number {
    return this.#nodes.length;
  }

  push(state: FleetState, node: number, local: number): void {
    let at = this.#nodes.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBetter(state, local, node, this.#local[parent] ?? 0, this.#nodes[parent] ?? 0)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#nodes[at] = node;
    this.#local[at] = local;
  }

  /** Returns the best entry that `isCurrent` accepts, or -1 if there is none. */
  top(state: FleetState, isCurrent: (node: number, local: number) => boolean): number {
    while (this.#nodes.length > 0) {
      const node = this.#nodes[0] ?? 0;
      if (isCurrent(node, this.#local[0] ?? 0)) return node;
      this.#pop(state);
    }
    return -1;
  }

  #pop(state: FleetState): void {
    const node = this.#nodes.pop();
    const local = this.#local.pop();
    const size = this.#nodes.length;
    if (size === 0 || node === undefined || local === undefined) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#precedes(state, child + 1, child)) child++;
      if (!isBetter(state, this.#local[child] ?? 0, this.#nodes[child] ?? 0, local, node)) break;
      this.#move(child, at);
      at = child;
    }
    this.#nodes[at] = node;
    this.#local[at] = local;
  }

  #precedes(state: FleetState, a: number, b: number): boolean {
    return isBetter(
      state,
      this.#local[a] ?? 0,
      this.#nodes[a] ?? 0,
      this.#local[b] ?? 0,
      this.#nodes[b] ?? 0,
    );
  }

  #move(from: number, to: number): void {
    this.#nodes[to] = this.#nodes[from] ?? 0;
    this.#local[to] = this.#local[from] ?? 0;
  }
}

function isBetter(state: FleetState, localA: number, a: number, localB: number, b: number): boolean {
  return localA > localB || (localA === localB && precedes(state, a, b));
}

// Entries outlive their nodes, so an index may have no node. Such entries are ordered by the tie-breaker alone, without
// a name.
function precedes({ nodes }: FleetState, a: number, b: number): boolean {
  const tieA = nodes.tieBreakers[a] ?? 0;
  const tieB = nodes.tieBreakers[b] ?? 0;
  if (tieA !== tieB) return tieA < tieB;
  return (nodes.specs[a]?.name ?? "") < (nodes.specs[b]?.name ?? "");
}
