/**
 * The candidate nodes. Each represents `population` nodes that differ from it only in `local` and are not better: one
 * if every feasible node is listed, more if a cache lists the best of each group.
 */
export class Shortlist {
  length = 0;
  nodes = new Int32Array(64);
  /** The part of the score that depends on the node's own state. */
  local = new Float64Array(64);
  population = new Int32Array(64).fill(1);
  totals = new Float64Array(64);
  /** A buffer for a plugin's raw scores during normalisation. */
  raw = new Float64Array(64);

  /** Clears the list and reserves space. */
  reserve(size: number): void {
    this.length = 0;
    if (size <= this.nodes.length) return;
    const room = 2 ** Math.ceil(Math.log2(size));
    this.nodes = new Int32Array(room);
    this.local = new Float64Array(room);
    this.population = new Int32Array(room).fill(1);
    this.totals = new Float64Array(room);
    this.raw = new Float64Array(room);
  }

  /** Makes the list contain one node. */
  single(node: number): this {
    this.reserve(1);
    this.nodes[0] = node;
    this.length = 1;
    return this;
  }

  push(node: number, local: number, population: number): void {
    const at = this.length++;
    this.nodes[at] = node;
    this.local[at] = local;
    this.population[at] = population;
  }
}
