import type { Clock } from "../time/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A clock that advances only on demand, so that minutes of the fleet's time pass at once. */
export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<Timer>();

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  // Arrow functions, because a clock's parts are passed on one by one.
  readonly nowMs = (): number => this.#nowMs;

  readonly monotonicMs = (): number => this.#nowMs;

  readonly schedule = (delayMs: number, run: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** Goes on to what falls due next, if that is not after the moment, and runs it. False: nothing does. */
  next(untilMs: number): boolean {
    let atMs = Number.POSITIVE_INFINITY;
    for (const timer of this.#timers) atMs = Math.min(atMs, timer.atMs);
    if (atMs > untilMs) return false;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    for (const timer of [...this.#timers]) {
      if (timer.atMs > atMs || !this.#timers.delete(timer)) continue;
      timer.run();
    }
    return true;
  }
}
