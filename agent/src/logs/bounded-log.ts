import type { Clock } from "../clock.ts";
import type { LogFile, LogSnapshot } from "./log-file.ts";
import type { LogTimes } from "./log-times.ts";
import type { TrimMode } from "./trim-head.ts";
import { watchFile } from "./watch-file.ts";

export interface BoundedLogLimits {
  readonly maxBytes: number;
  readonly checkMs: number;
}

export interface BoundedLogOptions {
  readonly file: LogFile;
  readonly times: LogTimes;
  readonly clock: Clock;
  readonly limits: BoundedLogLimits;
  readonly onError: (error: unknown) => void;
  readonly onTrim: (mode: TrimMode) => void;
  readonly onGrown: (bytes: number) => void;
}

// An active log is checked at this interval instead of watched, because a fast writer would flood the agent with
// notifications.
const CHECK_MIN_MS = 100;
const CHECK_MAX_MS = 400;
// Unwritten times are lost if the agent crashes; each write takes about 100 µs.
const FLUSH_MS = 5_000;
// While a reader reads the log up to its current end, trimming waits until the log exceeds its limit by this factor.
const READ_STRETCH = 2;

/**
 * Bounds one log. A quiet log is watched. After the first write it is checked at intervals, until a check finds nothing
 * new.
 */
export class BoundedLog {
  readonly file: LogFile;
  readonly times: LogTimes;
  readers = 0;
  /** The number of readers that stop at the current end. Their text must not have a gap. */
  #completeReads = 0;
  readonly #options: BoundedLogOptions;
  #kept = false;
  #endBytes: number | undefined;
  /** The time of the last check, by the monotonic and the wall clock. */
  #checkedAt: { readonly monotonicMs: number; readonly nowMs: number } | undefined;
  #checking: Promise<void> | undefined;
  #unwatch: (() => void) | undefined;
  /** Whether the watch began on an unchanged log, so that its first notification means a write at that moment. */
  #armed = false;
  #notified = false;
  #cancelCheck: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;

  constructor(options: BoundedLogOptions) {
    this.#options = options;
    this.file = options.file;
    this.times = options.times;
  }

  get kept(): boolean {
    return this.#kept;
  }

  keep(): void {
    if (this.#kept) return;
    this.#kept = true;
    this.#watchAndCheck();
  }

  /** Records the times of the last bytes and stops. Never rejects. */
  async release(): Promise<void> {
    if (!this.#kept) return;
    await this.checkAgain();
    this.#kept = false;
    this.#stopWatching();
    this.#cancelCheck?.();
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    await this.times.flush().catch(this.#options.onError);
  }

  /** Records new output and trims the log if it is too long. Never rejects. */
  inspect(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Starts a new check after a running one, which may have read an earlier state. */
  async checkAgain(): Promise<void> {
    await this.#checking;
    await this.inspect();
  }

  /** Records the output up to now and returns the log's state. Undefined if the log doesn't exist. */
  async note(): Promise<LogSnapshot | undefined> {
    const { clock } = this.#options;
    const armed = this.#armed;
    const nowMs = clock.nowMs();
    const sinceMs = armed ? nowMs : this.#checkedAt?.nowMs;
    const seen = await this.times.note(() => this.file.inspect(), sinceMs);
    if (seen === undefined) return undefined;
    this.#checkedAt = { monotonicMs: clock.monotonicMs(), nowMs };
    if (this.#kept && this.times.dirty) this.#cancelFlush ??= clock.schedule(FLUSH_MS, () => this.#flush());
    return seen;
  }

  /**
   * Trims a log that is too long, then delays trimming while `read` runs, unless the log grows to twice its limit
   * meanwhile.
   */
  async *readingCompletely<Piece>(read: AsyncIterable<Piece>): AsyncGenerator<Piece, void, undefined> {
    // A running check may already have decided to trim, and the log may be too long already.
    if (this.#kept) await this.checkAgain();
    this.#completeReads += 1;
    try {
      yield* read;
    } finally {
      this.#completeReads -= 1;
      if (this.#completeReads === 0 && this.#kept) void this.inspect();
    }
  }

  async trim(keepBytes: number): Promise<void> {
    const mode = await this.times.trimming(() => this.file.trim(keepBytes));
    if (mode !== undefined) this.#options.onTrim(mode);
  }

  async #check(): Promise<void> {
    const { clock, limits, onError, onGrown } = this.#options;
    let delayMs: number | undefined = limits.checkMs;
    this.#notified = false;
    try {
      const before = this.#checkedAt?.monotonicMs;
      const seen = await this.note();
      const { start, end } = seen ?? { start: this.file.shift, end: this.file.shift };
      const grownBytes = end - (this.#endBytes ?? start);
      this.#endBytes = end;
      if (grownBytes > 0) onGrown(grownBytes);
      const tooLong = end - start > limits.maxBytes * (this.#completeReads > 0 ? READ_STRETCH : 1);
      if (tooLong) await this.trim(limits.maxBytes);
      const room = tooLong ? limits.maxBytes : Math.max(0, limits.maxBytes - (end - start));
      const elapsedMs = before === undefined ? CHECK_MAX_MS : Math.max(1, clock.monotonicMs() - before);
      if (grownBytes > 0) delayMs = within((room * elapsedMs) / grownBytes, CHECK_MIN_MS, CHECK_MAX_MS);
      else if (this.#unwatch !== undefined) delayMs = this.#notified ? CHECK_MIN_MS : undefined;
    } catch (error) {
      onError(error);
    }
    this.#scheduleCheck(delayMs);
  }

  /** Schedules the next check. Undefined: at the next notification. */
  #scheduleCheck(delayMs: number | undefined): void {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    this.#armed = this.#kept && delayMs === undefined;
    if (!this.#kept || delayMs === undefined) return;
    this.#stopWatching();
    this.#cancelCheck = this.#options.clock.schedule(delayMs, () => this.#watchAndCheck());
  }

  // In this order, a write in between is noticed by one of the two.
  #watchAndCheck(): void {
    this.#unwatch ??= watchFile(this.file.path, () => {
      this.#notified = true;
      void this.inspect();
    });
    void this.inspect();
  }

  #stopWatching(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#armed = false;
  }

  #flush(): void {
    this.#cancelFlush = undefined;
    this.times.flush().catch(this.#options.onError);
  }
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
