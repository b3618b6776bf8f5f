import { type Clock, systemClock } from "../../src/time/clock.ts";

interface Timer {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly run: () => void;
  cancel: () => void;
}

/** The real time, of which a test can skip what it would have to wait for. */
export class SkipClock implements Clock {
  readonly #real: Clock;
  #skippedMs = 0;
  #wallOffsetMs = 0;
  readonly #timers = new Set<Timer>();

  /** `real`: the machine's clock by default. */
  constructor(real: Clock = systemClock) {
    this.#real = real;
  }

  // Arrow functions, because a clock's parts are passed on one by one.
  readonly nowMs = (): number => this.#real.nowMs() + this.#skippedMs + this.#wallOffsetMs;

  readonly monotonicMs = (): number => this.#real.monotonicMs() + this.#skippedMs;

  readonly schedule = (delayMs: number, run: () => void): (() => void) => {
    const timer = { delayMs, dueMs: this.monotonicMs() + Math.max(0, delayMs), run, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => this.#cancel(timer);
  };

  /** Reports whether something of the kind waits for its time. */
  pending(matches: (delayMs: number) => boolean): boolean {
    return [...this.#timers].some(({ delayMs }) => matches(delayMs));
  }

  /** Sets the wall clock, this far from the real time. The monotonic clock goes on. */
  setWall(offsetMs: number): void {
    this.#wallOffsetMs = offsetMs;
  }

  /** Runs timers that are due in this time now, in order, and moves the other timers nearer by it. */
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
