import type { Clock } from "./clock.ts";
import { TimerQueue } from "./timer-queue.ts";

export interface VirtualClockOptions {
  /** The first value of the monotonic clock. Default: 1,000,000. */
  readonly startMs?: number;
  /**
   * The first value of the wall clock. Default: `startMs` if set, otherwise far from the monotonic clock, so that code
   * that confuses the two fails.
   */
  readonly wallMs?: number;
  /** Rounds delays up to whole milliseconds, so that all times are whole numbers. Default: false. */
  readonly wholeMs?: boolean;
}

const DEFAULT_START_MS = 1_000_000;
const DEFAULT_WALL_MS = Date.UTC(2030, 0, 1);

/**
 * A clock that advances only on demand, for tests, simulations and dry runs. Timers fire by due time, and timers with
 * the same due time in order of creation.
 */
export class VirtualClock implements Clock {
  #nowMs: number;
  #wallOffsetMs: number;
  readonly #wholeMs: boolean;
  readonly #timers = new TimerQueue();

  constructor({ startMs, wallMs, wholeMs = false }: VirtualClockOptions = {}) {
    this.#nowMs = startMs ?? DEFAULT_START_MS;
    this.#wallOffsetMs = (wallMs ?? startMs ?? DEFAULT_WALL_MS) - this.#nowMs;
    this.#wholeMs = wholeMs;
  }

  // Arrow functions, because callers pass single functions of a clock on.
  readonly nowMs = (): number => this.#nowMs + this.#wallOffsetMs;

  readonly monotonicMs = (): number => this.#nowMs;

  readonly schedule = (delayMs: number, run: () => void): (() => void) =>
    this.#timers.add(this.#nowMs + Math.max(0, this.#wholeMs ? Math.ceil(delayMs) : delayMs), run);

  /** The number of timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Resolves after the delay. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.schedule(delayMs, resolve));
  }

  /** Lets time pass without firing timers, as in a stopped process. Due timers fire at the next advance. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Sets the wall clock. Timers and the monotonic clock are not affected. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Fires all timers that become due within the time, in order and without a turn of the event loop between them. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    while (this.#fireNext(untilMs));
    this.#nowMs = untilMs;
  }

  /** Advances like `advance`, and lets all promises settle before the first timer and after each one. */
  run(ms: number): Promise<void> {
    return this.runUntil(this.#nowMs + ms);
  }

  /** Advances to a time of the monotonic clock, or to the first timer after which `holds` returns true. */
  async runUntil(untilMs: number, holds: () => boolean = () => false): Promise<void> {
    await settle();
    while (this.#fireNext(untilMs)) {
      await settle();
      if (holds()) return;
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Advances to the next due time, at most to `untilMs`, and fires its timers. Returns false if no timer is due. */
  next(untilMs: number): boolean {
    const due = this.#timers.takeNextMoment(untilMs);
    if (due.length === 0) return false;
    for (const timer of due) {
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      timer.fire();
    }
    return true;
  }

  #fireNext(untilMs: number): boolean {
    const timer = this.#timers.takeNext(untilMs);
    if (timer === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    timer.fire();
    return true;
  }
}

/**
 * Waits until all promises have settled. Virtual worlds do no real I/O, so one turn of the event loop is sufficient.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
