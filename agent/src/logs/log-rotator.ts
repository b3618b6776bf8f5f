import type { Clock } from "../clock.ts";
import { BoundedLog, type BoundedLogLimits } from "./bounded-log.ts";
import { lastText, readLastLines } from "./last-lines.ts";
import type { LogStream } from "./log-entry.ts";
import { LogFile } from "./log-file.ts";
import { LogTimes } from "./log-times.ts";
import { stampLines } from "./stamp-lines.ts";
import { hasStreams } from "./stream-places.ts";
import { findLine, type TailOptions, tailLog } from "./tail.ts";
import { tailEntries } from "./tail-entries.ts";
import type { TrimMode } from "./trim-head.ts";
import { positionSince } from "./write-times.ts";

export interface LogRotatorOptions {
  readonly clock: Clock;
  /** The size beyond which a log is trimmed. The rotated part keeps as much. Default: 10 MiB. */
  readonly maxBytes?: number;
  /** The interval of checks for a log that can't be watched. Default: 5 s. */
  readonly checkMs?: number;
  readonly onError?: (path: string, error: unknown) => void;
  readonly onTrim?: (path: string, mode: TrimMode) => void;
  /** Called with the number of bytes that a log has grown since the last call for it. */
  readonly onGrown?: (bytes: number) => void;
}

/** The options of a reader. */
export interface RotatedTailOptions extends TailOptions {
  /** Leaves out lines that certainly arrived before. Milliseconds since the epoch. */
  readonly sinceMs?: number;
  /** Whether each line starts with the time at which it was written. */
  readonly timestamps?: boolean;
  /** Restricts the lines to one stream. Rejects if both streams share one log. */
  readonly stream?: LogStream;
}

const MAX_BYTES = 10 * 1024 * 1024;
const CHECK_MS = 5_000;
// Enough for at least one complete line.
const SHRUNK_BYTES = 4 * 1024;
// Entries have their own, exact times; a file's modification time may be one tick older.
const ENTRY_SLACK_MS = 1_000;

/**
 * Bounds logs while containerd's shims write them, records when their lines arrived, and reads them. The kernel reports
 * writes, so a quiet log causes no work.
 */
export class LogRotator {
  readonly #clock: Clock;
  readonly #limits: BoundedLogLimits;
  readonly #options: LogRotatorOptions;
  readonly #logs = new Map<string, BoundedLog>();
  #closed = false;

  constructor(options: LogRotatorOptions) {
    this.#clock = options.clock;
    this.#options = options;
    this.#limits = { maxBytes: options.maxBytes ?? MAX_BYTES, checkMs: options.checkMs ?? CHECK_MS };
  }

  /** Bounds the file from now on. The file need not exist yet. */
  keep(path: string): void {
    if (!this.#closed) this.#logOf(path).keep();
  }

  /** Stops bounding a log whose writer has ended. Its files stay. */
  async release(path: string): Promise<void> {
    const log = this.#logs.get(path);
    await log?.release();
    this.#forget(path);
  }

  /** Stops bounding the log and deletes its files. */
  async remove(path: string): Promise<void> {
    const log = this.#logOf(path);
    await log.release();
    this.#forget(path);
    await log.times.remove();
    await log.file.remove();
  }

  /** Deletes all but the last few lines of a log at once. */
  async shrink(path: string): Promise<void> {
    await this.#reading(path, (log) => log.trim(SHRUNK_BYTES));
  }

  /**
   * Reads the log as {@link tailLog} does. Without `follow` the text has no gap, unless the log grows by more than its
   * limit during the read.
   */
  async *tail(path: string, options: RotatedTailOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const log = this.#enter(path);
    const pieces = this.#tail(path, log, options);
    try {
      yield* options.follow ? pieces : log.readingCompletely(pieces);
    } finally {
      this.#leave(path, log);
    }
  }

  async *#tail(
    path: string,
    log: BoundedLog,
    options: RotatedTailOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { sinceMs, timestamps, stream } = options;
    const apart = await hasStreams(path);
    const slackMs = apart ? ENTRY_SLACK_MS : 0;
    const from = sinceMs === undefined ? undefined : await this.#lineSince(log, sinceMs - slackMs);
    if (apart) {
      yield* tailEntries(log.file, this.#clock, { ...options, ...(from !== undefined && { from }) });
      return;
    }
    if (stream !== undefined) throw new Error(notApart(stream));
    // Reads only recorded output, so that each line has a time.
    const upTo = timestamps ? async () => (await log.note())?.end ?? log.file.shift : undefined;
    const pieces = tailLog(log.file, this.#clock, {
      ...options,
      ...(from !== undefined && { from }),
      ...(upTo && { upTo }),
    });
    if (timestamps) yield* stampLines(pieces, (position) => log.times.at(position));
    else for await (const { data } of pieces) yield data;
  }

  /** Returns the last lines as {@link readLastLines} does. A log that doesn't exist has none. */
  async lastLines(path: string, count: number, maxBytes: number): Promise<string> {
    if (!(await hasStreams(path)))
      return this.#reading(path, (log) => readLastLines(log.file, count, maxBytes));
    const { signal } = new AbortController();
    const pieces: Uint8Array[] = [];
    for await (const piece of this.tail(path, { lines: count, follow: false, signal })) pieces.push(piece);
    return lastText(Buffer.concat(pieces), maxBytes);
  }

  /** Checks all logs now. */
  async check(): Promise<void> {
    await Promise.all([...this.#logs.values()].map((log) => log.checkAgain()));
  }

  /** Stops bounding logs. Readers continue until their signals abort. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#logs.values()].map((log) => log.release()));
  }

  async #lineSince(log: BoundedLog, sinceMs: number): Promise<number> {
    // Use the recorded end, because the file may have grown since.
    const { begin, end } = (await log.note()) ?? (await log.file.bounds());
    const position = positionSince(await log.times.all(), sinceMs, begin);
    return position === undefined ? end : findLine(log.file, position);
  }

  async #reading<Result>(path: string, read: (log: BoundedLog) => Promise<Result>): Promise<Result> {
    const log = this.#enter(path);
    try {
      return await read(log);
    } finally {
      this.#leave(path, log);
    }
  }

  #logOf(path: string): BoundedLog {
    const found = this.#logs.get(path);
    if (found !== undefined) return found;
    const file = new LogFile(path);
    const log = new BoundedLog({
      file,
      times: new LogTimes(file),
      clock: this.#clock,
      limits: this.#limits,
      onError: (error) => this.#options.onError?.(path, error),
      onTrim: (mode) => this.#options.onTrim?.(path, mode),
      onGrown: (bytes) => this.#options.onGrown?.(bytes),
    });
    this.#logs.set(path, log);
    return log;
  }

  #enter(path: string): BoundedLog {
    const log = this.#logOf(path);
    log.readers += 1;
    return log;
  }

  #leave(path: string, log: BoundedLog): void {
    log.readers -= 1;
    if (this.#logs.get(path) === log) this.#forget(path);
  }

  #forget(path: string): void {
    const log = this.#logs.get(path);
    if (log !== undefined && !log.kept && log.readers === 0) this.#logs.delete(path);
  }
}

function notApart(stream: LogStream): string {
  return `stdout and stderr of this run are in one log, so ${stream} alone can't be shown: containers whose pod has the annotation forage.dev/log-streams: separate keep them apart from their next start on, unless they have a terminal (tty) or the host's forage-logs doesn't run`;
}
