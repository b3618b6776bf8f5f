import { type Store, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { WallSpans } from "./wall-spans.ts";

export interface ActingTimeOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** Notices that the process was held up, and calls `heldUp` then. Called before the time is read. */
  readonly checkHoldUp?: () => void;
}

/** One reading of the time. All of its times are of the wall clock. */
export interface Moment {
  readonly nowMs: number;
  /** The present time less the time in which this process could act. */
  readonly upSinceMs: number;
  /**
   * Returns the present time less the time to act that has passed since a time on record. Time before the process started counts
   * in full. Minus infinity for a time in the future, which is from before the clock was set back.
   */
  readonly since: (atMs: number) => number;
}

/** A write of a sound store takes milliseconds. From this age on a write shows that the store stands still. */
const SLOW_WRITE_MS = 1_000;
/** Reconcilers and reports try a failed write again within 30 s. Without a failure since then nothing proves that writes fail. */
const FAILURE_COUNTS_MS = 35_000;
/** A wall clock that differs by more from the monotonic one was set. */
const WALL_JUMP_MS = 1_000;
/** Delay between two evaluations while the time stands still. */
const STANDSTILL_CHECK_MS = 1_000;

/**
 * Measures the time in which the coordinator was able to act. The time stands still while decisions wait for the nodes after a
 * start, while the process is held up, and while the store doesn't complete writes. Deadlines that end in an action count this
 * time, so that a fault of the coordinator itself fails no rollout, evicts no pod and stops no workspace.
 *
 * Records hold times of the wall clock. A `Moment` translates them, also when the wall clock was set in the meantime. A time that
 * could be from before and from after the clock was set back counts as the later one.
 */
export class ActingTime {
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly #checkHoldUp: () => void;
  readonly #spans: WallSpans;
  /** The times at which writes began that have not ended, the oldest first. */
  readonly #writes = new Map<symbol, number>();
  #failedAtMs: number | undefined;
  #holds = 0;
  #lastMs: number;
  #actedMs = 0;
  /** The wall clock's time less the monotonic one. */
  #wallOffsetMs: number;

  constructor({ clock, checkHoldUp = () => {} }: ActingTimeOptions) {
    this.#clock = clock;
    this.#checkHoldUp = checkHoldUp;
    this.#lastMs = clock.monotonicMs();
    this.#wallOffsetMs = clock.nowMs() - this.#lastMs;
    this.#spans = new WallSpans(clock.nowMs());
  }

  /** The time in which this process could act, in milliseconds. */
  readonly monotonicMs = (): number => {
    this.#read();
    return this.#actedMs;
  };

  readonly now = (): Moment => {
    const actedMs = this.monotonicMs();
    const nowMs = this.#clock.nowMs();
    const since = (atMs: number): number => nowMs - (actedMs - this.#spans.actedAt(atMs, nowMs));
    return { nowMs, upSinceMs: nowMs - actedMs, since };
  };

  /** Returns the shortest delay before the next evaluation, so that loops don't spin while the time stands still. */
  readonly leastDelayMs = (): number => {
    this.#read();
    return this.#standsStill() ? STANDSTILL_CHECK_MS : 0;
  };

  /** Notes that the process did not run for so long until now. */
  heldUp(heldMs: number): void {
    this.#advance(heldMs);
  }

  /** Notices a step of the wall clock. Called at short intervals, because a time between a step and its notice is ambiguous. */
  tick(): void {
    this.#read();
  }

  /** The time stands still until this settles. */
  holdUntil(started: Promise<void>): void {
    this.#read();
    this.#holds++;
    const release = (): void => {
      this.#read();
      this.#holds--;
    };
    started.then(release, release);
  }

  /** Returns the store. Its writes show from now on whether the coordinator can act. */
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
    this.#checkHoldUp();
    this.#advance();
  }

  /** Counts the time since the last call, as far as the coordinator could act. */
  #advance(heldMs = 0): void {
    const nowMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.nowMs();
    const elapsedMs = nowMs - this.#lastMs;
    const actedMs = Math.max(0, this.#countableMs(nowMs) - heldMs);
    // At any moment since the last call.
    if (Math.abs(wallMs - nowMs - this.#wallOffsetMs) > WALL_JUMP_MS) {
      this.#wallOffsetMs = wallMs - nowMs;
      this.#spans.begin(wallMs - elapsedMs, this.#actedMs);
    }
    this.#actedMs += actedMs;
    this.#lastMs = nowMs;
    this.#spans.extend(this.#actedMs);
    if (actedMs < elapsedMs || heldMs > elapsedMs) this.#spans.begin(wallMs, this.#actedMs);
    if (nowMs - (this.#failedAtMs ?? nowMs) >= FAILURE_COUNTS_MS) this.#failedAtMs = undefined;
  }

  #countableMs(nowMs: number): number {
    if (this.#holds > 0 || this.#failedAtMs !== undefined) return 0;
    return Math.max(0, Math.min(nowMs, this.#oldestWriteMs() + SLOW_WRITE_MS) - this.#lastMs);
  }

  #standsStill(): boolean {
    const isSlow = this.#oldestWriteMs() + SLOW_WRITE_MS <= this.#lastMs;
    return this.#holds > 0 || this.#failedAtMs !== undefined || isSlow;
  }

  #oldestWriteMs(): number {
    for (const atMs of this.#writes.values()) return atMs;
    return Number.POSITIVE_INFINITY;
  }
}

/** Reports whether a write failed because of the store's disk, and not because of the write. */
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
