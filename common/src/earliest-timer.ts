import type { MonotonicClock } from "./clock.ts";

/**
 * One timer for many deadlines. It fires at the earliest of the times that were requested since it last fired, and its
 * owner then finds what is due. Thousands of timers that are replaced all the time would fill the old part of the heap.
 */
export class EarliestTimer {
  readonly #clock: MonotonicClock;
  readonly #run: () => void;
  /** The monotonic time at which the timer fires. */
  #atMs = Number.POSITIVE_INFINITY;
  #cancel: () => void = () => {};

  constructor(clock: MonotonicClock, run: () => void) {
    this.#clock = clock;
    this.#run = run;
  }

  /** Requests that the timer fires at this monotonic time, or earlier. `Infinity` requests nothing. */
  fireBy(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.#cancel();
    this.#atMs = atMs;
    this.#cancel = this.#clock.schedule(Math.max(0, atMs - this.#clock.monotonicMs()), () => {
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#run();
    });
  }

  /** Cancels every request. */
  stop(): void {
    this.#cancel();
    this.#atMs = Number.POSITIVE_INFINITY;
  }
}
