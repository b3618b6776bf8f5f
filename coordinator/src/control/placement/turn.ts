/** The number of evaluated nodes after which the event loop handles heartbeats and calls: about 10 ms of work. */
const NODES_PER_TURN = 100_000;

/** The cost of handling a pod apart from evaluating nodes, in evaluated nodes. */
export const NODES_PER_POD = 20;

/** Limits how long placement occupies the event loop, measured in evaluated nodes. */
export class Turn {
  readonly #defer: (run: () => void) => void;
  #nodes = 0;

  constructor(defer: (run: () => void) => void) {
    this.#defer = defer;
  }

  get isOver(): boolean {
    return this.#nodes >= NODES_PER_TURN;
  }

  spendNow(nodes: number): void {
    this.#nodes += nodes;
  }

  /** Adds the cost. Yields to the event loop once the limit is reached. */
  async spend(nodes: number): Promise<void> {
    this.#nodes += nodes;
    if (!this.isOver) return;
    this.#nodes = 0;
    const defer = this.#defer;
    await new Promise<void>((resolve) => defer(resolve));
  }
}
