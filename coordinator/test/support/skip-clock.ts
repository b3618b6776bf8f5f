import { type Clock, systemClock } from "../../src/time/clock.ts";

interface Timer {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly run: () => void;
  cancel: () => void;
}

/** The real time, of which a test can skip parts for which it would have to wait. */
export class SkipClock implements Clock {
  readonly #real: Clock;
  #skippedMs = 0;
  #wallOffsetMs = 0;
  readonly #timers = new Set<Timer>();

  /** Creates a clock. `real` is the machine's clock by default. */
  constructor(real: Clock = systemClock) {
    this.#real = real;
  }

  // Arrow functions, because the methods of a clock are passed on individually.
  readonly nowMs = (): number => this.#real.nowMs() + this.#skippedMs + this.#wallOffsetMs;

  readonly monotonicMs = (): number => this.#real.monotonicMs() + this.#skippedMs;

  readonly schedule = (delayMs: number, run: () => void): (() => void) => {
    const timer = { delayMs, dueMs: this.monotonicMs() + Math.max(0, delayMs), run, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => this.#cancel(timer);
  };

  /** Reports whether a matching timer is pending. */
  pending(matches: (delayMs: number) => boolean): boolean {
    return [...this.#timers].some(({ delayMs }) => matches(delayMs));
  }

  /** Sets the wall clock to this offset from the real time. The monotonic clock continues. */
  setWall(offsetMs: number): void {
    this.#wallOffsetMs = offsetMs;
  }

  /** Advances the time: runs due timers in order, and shortens the others. */
  skip(ms: number): void {
    this.#skippedMs += ms;
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= this.monotonicMs());
    for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) if (this.#timers.has(timer)) this.#fire(timer);
    for (const timer of this.#timers) {
      timer.cancel();
      this.#arm(timer);
    }
  }

  #arm(timer: Timer): void {
    timer.cancel = this.#real.schedule(timer.dueMs - this.monotonicMs(), () => this.#fire(timer));
  }

  #fire(timer: Timer): void {
    this.#cancel(timer);
    timer.run();
  }

  #cancel(timer: Timer): void {
    timer.cancel();
    this.#timers.delete(timer);
  }
}
