import type { Clock } from "./clock.ts";

/** A clock that advances only on demand, for tests and the simulation. */
export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Runs what falls due on the way, in order. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#timers]
        .filter((timer) => timer.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
    }
    this.#nowMs = untilMs;
  }
}
