import { appendFile, readFile, rename, rm, writeFile } from "node:fs/promises";
import type { LogFile, LogSnapshot } from "./log-file.ts";
import {
  decodeWriteTimes,
  encodeWriteTimes,
  thinWriteTimes,
  type WriteTime,
  writeTimeOf,
} from "./write-times.ts";

/**
 * The limit of recorded write times for a log. Each takes about 6 bytes on disk. They are read into memory only for
 * readers that request times.
 */
const ARRIVALS_MAX = 32_768;
// Beyond this many, times are written at once. Followers are answered from these.
const RECENT_MAX = 256;
// Times this close together are merged.
const SAME_MS = 1_000;

/**
 * Records when a log's bytes arrived, in `<path>.times` beside the log. A watcher records each growth. Bytes that
 * arrived without a watch have an interval. Memory holds positions; the file holds offsets, so that a restarted agent
 * can read them. Calls run one after the other.
 */
export class LogTimes {
  readonly #file: LogFile;
  /** The newest arrivals in order. All but the last `#unwritten` of them are on disk. */
  #recent: readonly WriteTime[] = [];
  #unwritten = 0;
  #countOnDisk = 0;
  #loaded = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(file: LogFile) {
    this.#file = file;
  }

  static pathOf(logPath: string): string {
    return `${logPath}.times`;
  }

  /** Reports whether some times are not written yet. */
  get dirty(): boolean {
    return this.#unwritten > 0;
  }

  /**
   * Checks the log after all earlier calls and returns the log's state, which is therefore newer than the records. New
   * bytes arrived since `sinceMs`. Undefined: since the last record, or since the log was created.
   */
  note(
    see: () => Promise<LogSnapshot | undefined>,
    sinceMs: number | undefined,
  ): Promise<LogSnapshot | undefined> {
    return this.#inTurn(async () => {
      const look = await see();
      if (look !== undefined) await this.#note(look, sinceMs);
      return look;
    });
  }

  async #note(look: LogSnapshot, sinceMs: number | undefined): Promise<void> {
    await this.#load(look.end);
    // Another program has emptied the log.
    if (look.end < (this.#recent.at(-1)?.end ?? look.end)) await this.#replace([]);
    const last = this.#recent.at(-1);
    if (look.end <= (last?.end ?? look.begin)) return;
    const fromMs = sinceMs ?? last?.atMs ?? look.bornMs;
    const exact = look.changedMs - fromMs < SAME_MS;
    const arrival = { end: look.end, atMs: look.changedMs, ...(!exact && { fromMs }) };
    this.#recent = [...this.#recent, arrival];
    this.#unwritten += 1;
    if (this.#unwritten < RECENT_MAX) return;
    try {
      await this.#write();
    } catch (error) {
      this.#recent = thinWriteTimes(this.#recent.slice(-this.#unwritten), RECENT_MAX);
      this.#unwritten = this.#recent.length;
      throw error;
    }
  }

  /** Returns all write times, oldest first. */
  all(): Promise<readonly WriteTime[]> {
    return this.#inTurn(() => this.#all());
  }

  /** Returns the time of the byte at `position`. Undefined if it isn't recorded. */
  async at(position: number): Promise<WriteTime | undefined> {
    const [oldest] = this.#recent;
    if (oldest !== undefined && position >= oldest.end) return writeTimeOf(this.#recent, position);
    return writeTimeOf(await this.all(), position);
  }

  flush(): Promise<void> {
    return this.#inTurn(() => this.#write());
  }

  /**
   * Runs `trim`, which moves the log's head. The index is removed during that time, because wrong offsets after a crash
   * would be worse than lost times.
   */
  trimming<Result>(trim: () => Promise<Result>): Promise<Result> {
    return this.#inTurn(async () => {
      const all = await this.#all();
      await rm(LogTimes.pathOf(this.#file.path), { force: true });
      try {
        return await trim();
      } finally {
        const { begin } = await this.#file.bounds();
        await this.#replace(all.filter((it) => it.end > begin));
      }
    });
  }

  remove(): Promise<void> {
    return this.#inTurn(() => this.#replace([]));
  }

  async #all(): Promise<readonly WriteTime[]> {
    const written = this.#recent.length - this.#unwritten;
    const { writeTimes } = await this.#read();
    return [...writeTimes, ...this.#recent.slice(written)];
  }

  async #load(end: number): Promise<void> {
    if (this.#loaded) return;
    const { writeTimes, wholeBytes, bytes } = await this.#read();
    this.#loaded = true;
    this.#countOnDisk = writeTimes.length;
    this.#recent = writeTimes.slice(-RECENT_MAX);
    // The index belongs to another log or is truncated, so appended records would be unreadable.
    if ((writeTimes.at(-1)?.end ?? end) > end) await this.#replace([]);
    else if (wholeBytes < bytes) await this.#replace(writeTimes);
  }

  async #write(): Promise<void> {
    if (this.#unwritten === 0) return;
    const fresh = this.#recent.slice(-this.#unwritten);
    if (this.#countOnDisk + fresh.length > ARRIVALS_MAX) {
      const { begin } = await this.#file.bounds();
      return this.#replace((await this.#all()).filter((it) => it.end > begin));
    }
    const frame = encodeWriteTimes(fresh, this.#file.shift);
    await appendFile(LogTimes.pathOf(this.#file.path), frame, { mode: 0o600 });
    this.#written(this.#recent, this.#countOnDisk + fresh.length);
  }

  async #replace(writeTimes: readonly WriteTime[]): Promise<void> {
    const path = LogTimes.pathOf(this.#file.path);
    // Leave room for as many again, which makes thinning rare.
    const kept =
      writeTimes.length > ARRIVALS_MAX / 2 ? thinWriteTimes(writeTimes, ARRIVALS_MAX / 2) : writeTimes;
    this.#written(kept, kept.length);
    if (kept.length === 0) return rm(path, { force: true });
    await writeFile(`${path}.partial`, encodeWriteTimes(kept, this.#file.shift), { mode: 0o600 });
    await rename(`${path}.partial`, path);
  }

  #written(writeTimes: readonly WriteTime[], countOnDisk: number): void {
    this.#recent = writeTimes.slice(-RECENT_MAX);
    this.#unwritten = 0;
    this.#countOnDisk = countOnDisk;
  }

  async #read(): Promise<{ writeTimes: WriteTime[]; wholeBytes: number; bytes: number }> {
    const bytes = await readIfThere(LogTimes.pathOf(this.#file.path));
    return { ...decodeWriteTimes(bytes, this.#file.shift), bytes: bytes.length };
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}
