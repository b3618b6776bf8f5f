import type { Clock } from "../clock.ts";
import { readLastLines } from "./last-lines.ts";
import { LogFile } from "./log-file.ts";
import { type TailOptions, tailLog } from "./tail.ts";
import type { TrimMode } from "./trim-head.ts";

export interface LogKeeperOptions {
  readonly clock: Clock;
  /** A log is trimmed when it has grown beyond this, and as much is kept beside it. Default 10 MiB. */
  readonly maxBytes?: number;
  /** How often all logs are looked at when none grows fast. Default 5 s. */
  readonly checkMs?: number;
  readonly onError?: (path: string, error: unknown) => void;
  readonly onTrim?: (path: string, mode: TrimMode) => void;
}

interface Kept {
  readonly file: LogFile;
  readonly keep: boolean;
  /** At the last look. */
  endBytes: number;
  readers: number;
}

const MAX_BYTES = 10 * 1024 * 1024;
const CHECK_MS = 5_000;
// A writer that fills the limit faster than this gets ahead of it, by what it writes in the meantime.
const CHECK_MIN_MS = 200;

/** Keeps logs within bounds while containerd's shims write them, and reads them. All logs share one timer; a look costs two stats. */
export class LogKeeper {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #checkMs: number;
  readonly #onError: (path: string, error: unknown) => void;
  readonly #onTrim: (path: string, mode: TrimMode) => void;
  readonly #logs = new Map<string, Kept>();
  #timer: { readonly dueMs: number; readonly cancel: () => void } | undefined;
  #checkedAtMs: number;
  #checking: Promise<void> | undefined;
  #closed = false;

  constructor(options: LogKeeperOptions) {
    this.#clock = options.clock;
    this.#maxBytes = options.maxBytes ?? MAX_BYTES;
    this.#checkMs = options.checkMs ?? CHECK_MS;
    this.#onError = options.onError ?? (() => {});
    this.#onTrim = options.onTrim ?? (() => {});
    this.#checkedAtMs = options.clock.monotonicMs();
  }

  /** Bounds the file from now on. It need not be there yet. */
  keep(path: string): void {
    this.#logs.set(path, {
      file: new LogFile(path),
      endBytes: 0,
      readers: 0,
      ...this.#logs.get(path),
      keep: true,
    });
    this.#arm(CHECK_MIN_MS);
  }

  /** Its writer has ended. The files stay. */
  release(path: string): void {
    const log = this.#logs.get(path);
    if (log === undefined) return;
    if (log.readers === 0) this.#logs.delete(path);
    else this.#logs.set(path, { ...log, keep: false });
  }

  /** Releases the log and deletes its files. */
  async remove(path: string): Promise<void> {
    const file = this.#logs.get(path)?.file ?? new LogFile(path);
    this.release(path);
    await file.remove();
  }

  /** See {@link tailLog}. */
  async *tail(path: string, options: TailOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const file = this.#enter(path);
    try {
      yield* tailLog(file, this.#clock, options);
    } finally {
      this.#leave(path);
    }
  }

  /** See {@link readLastLines}. A log that isn't there has none. */
  async lastLines(path: string, count: number, maxBytes: number): Promise<string> {
    const file = this.#enter(path);
    try {
      return await readLastLines(file, count, maxBytes);
    } finally {
      this.#leave(path);
    }
  }

  /** Looks at all logs now. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** Stops bounding; readers go on until their own signals. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#checking;
  }

  async #check(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const elapsedMs = Math.max(1, nowMs - this.#checkedAtMs);
    this.#checkedAtMs = nowMs;
    let nextMs = this.#checkMs;
    for (const log of this.#logs.values()) {
      if (log.keep) nextMs = Math.min(nextMs, await this.#look(log, elapsedMs));
    }
    this.#arm(nextMs);
  }

  /** When it should be looked at again, by how fast it grows. */
  async #look(log: Kept, elapsedMs: number): Promise<number> {
    try {
      const { start, end } = await log.file.bounds();
      const bytesPerMs = Math.max(0, end - log.endBytes) / elapsedMs;
      log.endBytes = end;
      const size = end - start;
      if (size > this.#maxBytes) {
        const mode = await log.file.trim(this.#maxBytes);
        if (mode !== undefined) this.#onTrim(log.file.path, mode);
      }
      const room = size > this.#maxBytes ? this.#maxBytes : this.#maxBytes - size;
      return bytesPerMs === 0 ? this.#checkMs : room / bytesPerMs;
    } catch (error) {
      this.#onError(log.file.path, error);
      return this.#checkMs;
    }
  }

  #arm(delayMs: number): void {
    if (this.#closed || this.#logs.size === 0) return;
    const waitMs = Math.max(CHECK_MIN_MS, delayMs);
    const dueMs = this.#clock.monotonicMs() + waitMs;
    if (this.#timer !== undefined && this.#timer.dueMs <= dueMs) return;
    this.#timer?.cancel();
    const cancel = this.#clock.after(waitMs, () => {
      this.#timer = undefined;
      void this.check();
    });
    this.#timer = { dueMs, cancel };
  }

  #enter(path: string): LogFile {
    const log = this.#logs.get(path) ?? { file: new LogFile(path), keep: false, endBytes: 0, readers: 0 };
    log.readers += 1;
    this.#logs.set(path, log);
    return log.file;
  }

  #leave(path: string): void {
    const log = this.#logs.get(path);
    if (log === undefined) return;
    log.readers -= 1;
    if (log.readers === 0 && !log.keep) this.#logs.delete(path);
  }
}
