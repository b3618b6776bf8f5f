import { type Store, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { WallSpans } from "./wall-spans.ts";

export interface ActingTimeOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** Detects that the process was blocked, and then calls `recordStall`. Called before the time is read. */
  readonly checkStall?: () => void;
}

/** A reading of the time. All times are wall-clock times in milliseconds since the epoch. */
export interface TimeReading {
  readonly nowMs: number;
  /** The current time minus the time for which this process could act. */
  readonly upSinceMs: number;
  /**
   * Returns the current time minus the acting time that has passed since a recorded time. Time before the start of the
   * process counts in full. Returns minus infinity for a time in the future, which was recorded before the clock was set
   * back.
   */
  readonly since: (atMs: number) => number;
}

/** The age from which a pending write shows that the store is stalled. Writes usually take milliseconds. */
const SLOW_WRITE_MS = 1_000;
/**
 * The time for which a failed write counts as a sign that writes fail. Reconcilers retry writes within 30 s, so a continued
 * failure shows within this time.
 */
const FAILURE_COUNTS_MS = 35_000;
/** The difference between the wall clock and the monotonic clock from which the wall clock counts as changed. */
const WALL_JUMP_MS = 1_000;
/** The delay between two evaluations while the acting time stands still. */
const STANDSTILL_CHECK_MS = 1_000;

/**
 * Measures the acting time: the time in which the coordinator was able to act. It stands still while decisions wait for the
 * nodes after a start, while the process is blocked, and while the store doesn't complete writes. Deadlines that end in an
 * action use it, so that a fault of the coordinator itself fails no rollout, evicts no pod and stops no workspace.
 *
 * Records hold wall-clock times. A `TimeReading` translates them, even if the wall clock was changed in the meantime. A time
 * that may have been recorded before or after the clock was set back counts as the later one.
 */
export class ActingTime {
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly #checkStall: () => void;
  readonly #spans: WallSpans;
  /** The start times of pending writes, the oldest first. */
  readonly #writes = new Map<symbol, number>();
  #failedAtMs: number | undefined;
  #holds = 0;
  #lastMs: number;
  #actedMs = 0;
  /** The wall clock's time minus the monotonic time. */
  #wallOffsetMs: number;

  constructor({ clock, checkStall = () => {} }: ActingTimeOptions) {
    this.#clock = clock;
    this.#checkStall = checkStall;
    this.#lastMs = clock.monotonicMs();
    this.#wallOffsetMs = clock.nowMs() - this.#lastMs;
    this.#spans = new WallSpans(clock.nowMs());
  }

  /** Returns the acting time of this process in milliseconds. */
  readonly monotonicMs = (): number => {
    this.#read();
    return this.#actedMs;
  };

  readonly now = (): TimeReading => {
    const actedMs = this.monotonicMs();
    const nowMs = this.#clock.nowMs();
    const since = (atMs: number): number => nowMs - (actedMs - this.#spans.actedAt(atMs, nowMs));
    return { nowMs, upSinceMs: nowMs - actedMs, since };
  };

  /** Returns the shortest delay before the next evaluation, so that loops don't spin while the acting time stands still. */
  readonly leastDelayMs = (): number => {
    this.#read();
    return this.#isPaused() ? STANDSTILL_CHECK_MS : 0;
  };

  /** Records that the process was blocked for this long until now. */
  recordStall(stalledMs: number): void {
    this.#advance(stalledMs);
  }

  /**
   * Detects changes of the wall clock. Must be called at short intervals, because a time between a change and its detection
   * is ambiguous.
   */
  tick(): void {
    this.#read();
  }

  /** Stops the acting time until the promise settles. */
  holdUntil(started: Promise<void>): void {
    this.#read();
    this.#holds++;
    const release = (): void => {
      this.#read();
      this.#holds--;
    };
    started.then(release, release);
  }

  /** Returns a proxy of the store whose writes are tracked. */
  tracked(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "txn") return (...given: Parameters<Store["txn"]>) => this.#write(target, given);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #write(store: Store, given: Parameters<Store["txn"]>): ReturnType<Store["txn"]> {
    const id = Symbol("write");
    this.#read();
    this.#writes.set(id, this.#lastMs);
    try {
      const result = await store.txn(...given);
      this.#read();
      this.#failedAtMs = undefined;
      return result;
    } catch (error) {
      this.#read();
      if (isOfTheStore(error)) this.#failedAtMs = this.#lastMs;
      throw error;
    } finally {
      this.#writes.delete(id);
    }
  }

  #read(): void {
    this.#checkStall();
    this.#advance();
  }

  /** Adds the part of the time since the last call in which the coordinator could act. */
  #advance(stalledMs = 0): void {
    const nowMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.nowMs();
    const elapsedMs = nowMs - this.#lastMs;
    const actedMs = Math.max(0, this.#countableMs(nowMs) - stalledMs);
    // The change may have happened at any moment since the last call.
    if (Math.abs(wallMs - nowMs - this.#wallOffsetMs) > WALL_JUMP_MS) {
      this.#wallOffsetMs = wallMs - nowMs;
      this.#spans.begin(wallMs - elapsedMs, this.#actedMs);
    }
    this.#actedMs += actedMs;
    this.#lastMs = nowMs;
    this.#spans.extend(this.#actedMs);
    if (actedMs < elapsedMs || stalledMs > elapsedMs) this.#spans.begin(wallMs, this.#actedMs);
    if (nowMs - (this.#failedAtMs ?? nowMs) >= FAILURE_COUNTS_MS) this.#failedAtMs = undefined;
  }

  #countableMs(nowMs: number): number {
    if (this.#holds > 0 || this.#failedAtMs !== undefined) return 0;
    return Math.max(0, Math.min(nowMs, this.#oldestWriteMs() + SLOW_WRITE_MS) - this.#lastMs);
  }

  #isPaused(): boolean {
    const isSlow = this.#oldestWriteMs() + SLOW_WRITE_MS <= this.#lastMs;
    return this.#holds > 0 || this.#failedAtMs !== undefined || isSlow;
  }

  #oldestWriteMs(): number {
    for (const atMs of this.#writes.values()) return atMs;
    return Number.POSITIVE_INFINITY;
  }
}

/** Reports whether a write failed because of the store, and not because of its content. */
function isOfTheStore(error: unknown): boolean {
  return error instanceof StoreError && OF_THE_STORE.has(error.code);
}

const OF_THE_STORE: ReadonlySet<string> = new Set([
  "NO_SPACE",
  "IO_ERROR",
  "LEAD_LOST",
  "OVERLOADED",
  "UNAVAILABLE",
  "UNCONFIRMED",
]);
