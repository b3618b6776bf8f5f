import type { Clock } from "../../src/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that advances on demand. All work that is possible happens between two timers. */
export class SimClock implements Clock {
  #nowMs = 1_000_000;
  /** Far from the monotonic clock, so that mixing the two up shows. */
  #wallOffsetMs = Date.UTC(2030, 0, 1);
  #order = 0;
  readonly #timers = new Set<Timer>();

  nowMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** Someone sets the wall clock: timers and the monotonic clock take no notice. */
  setWallBy(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    this.#order += 1;
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  get timers(): number {
    return this.#timers.size;
  }

  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await settle();
    for (let next = this.#next(); next !== undefined && next.atMs <= untilMs; next = this.#next()) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.#nowMs = untilMs;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (
        first === undefined ||
        timer.atMs < first.atMs ||
        (timer.atMs === first.atMs && timer.order < first.order)
      ) {
        first = timer;
      }
    }
    return first;
  }
}

/** Nothing here does real input or output, so one turn of the event loop empties all promise queues. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
