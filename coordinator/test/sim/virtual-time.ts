interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** The one time of a simulated world. Between two of its timers everything has run that can run. */
export class VirtualTime {
  #nowMs = Date.UTC(2030, 0, 1);
  #order = 0;
  readonly #heap: Timer[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Timers that have neither run nor been cancelled. */
  get pending(): number {
    return this.#heap.filter(({ cancelled }) => !cancelled).length;
  }

  /** Whole milliseconds, so that traces can be read. Timers of one moment run in the order in which they were set. */
  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, Math.round(delayMs)), order: this.#order++, run };
    const entry = { ...timer, cancelled: false };
    this.#push(entry);
    return () => {
      entry.cancelled = true;
    };
  }

  /** Until that moment, or until it holds after some timer. */
  async runUntil(untilMs: number, holds: () => boolean = () => false): Promise<void> {
    await settle();
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#pop();
      if (next.cancelled) continue;
      this.#nowMs = next.atMs;
      next.run();
      await settle();
      if (holds()) return;
    }
    this.#nowMs = untilMs;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, left)) child++;
      const least = heap[child];
      if (least === undefined || !isBefore(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Nothing here does real input or output, so one turn of the event loop empties all promise queues. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
