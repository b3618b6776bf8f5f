import type { Clock } from "../../src/time/clock.ts";

/** A clock that moves only when the test advances it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #wallJumpMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  constructor(startMs = 1_000_000) {
    this.#nowMs = startMs;
  }

  /** Timers that have neither run nor been cancelled. */
  get pending(): number {
    return this.#timers.size;
  }

  // Arrow functions, because a clock's parts are passed on one by one.
  readonly nowMs = (): number => this.#nowMs + this.#wallJumpMs;

  readonly monotonicMs = (): number => this.#nowMs;

  readonly schedule = (delayMs: number, run: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** Time passes, and nothing runs: what falls due does so at the next `advance`. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** The wall clock is set; nothing else passes. */
  jumpWall(ms: number): void {
    this.#wallJumpMs += ms;
  }

  /** Runs what falls due on the way, in order. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const [due] = [...this.#timers].filter((t) => t.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
    }
    this.#nowMs = untilMs;
  }
}
