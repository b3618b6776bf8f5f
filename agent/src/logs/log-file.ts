import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { findStart, removeLog, type TrimMode, trimHead } from "./trim-head.ts";

/**
 * The bounds of a log in positions. Positions count the bytes of a log from its beginning when it was opened (rotated
 * bytes are negative), and stay valid when the log's head is removed.
 */
export interface LogBounds {
  /** The position of the oldest existing byte. */
  readonly begin: number;
  /** The position at which the file begins. Older data is in the rotated file. */
  readonly start: number;
  readonly end: number;
}

/** The log's bounds, with times in milliseconds since the epoch. */
export interface LogSnapshot extends LogBounds {
  /** The time of the last write. */
  readonly changedMs: number;
  readonly bornMs: number;
}

export interface LogChunk {
  readonly data: Buffer;
  /** The position of the first byte. It is later than requested if the requested bytes no longer exist. */
  readonly position: number;
}

/**
 * A log to which containerd's shim appends, together with its rotated part (`<path>.1`). Reading and trimming take
 * turns, so that the file is stable during a read.
 */
export class LogFile {
  readonly path: string;
  #shift = 0;
  /** The offset of the first byte that isn't in a hole. Undefined until it is determined. */
  #startOffset: number | undefined;
  #mode: TrimMode;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(path: string, options: { readonly mode?: TrimMode } = {}) {
    this.path = path;
    this.#mode = options.mode ?? "collapse";
  }

  get rotatedPath(): string {
    return `${this.path}.1`;
  }

  /** The difference between positions and offsets in the file. */
  get shift(): number {
    return this.#shift;
  }

  /** Returns the log's bounds. A missing file counts as empty. */
  bounds(): Promise<LogBounds> {
    return this.#inTurn(() => this.#bounds());
  }

  /** Returns the log's bounds and the time at which they were read. Undefined if there is no file. */
  inspect(): Promise<LogSnapshot | undefined> {
    return this.#inTurn(async () => {
      const seen = await statIfThere(this.path);
      if (seen === undefined) return undefined;
      // Both come from one call, so that a later size comes with a later time.
      const times = { changedMs: Math.floor(seen.mtimeMs), bornMs: Math.floor(seen.birthtimeMs) };
      return { ...(await this.#bounds(seen.size)), ...times };
    });
  }

  /** Reads `maxBytes` from `position` on, or up to the end. Returns no bytes at the end. */
  read(position: number, maxBytes: number): Promise<LogChunk> {
    return this.#inTurn(async () => {
      const { begin, start, end } = await this.#bounds();
      // If the offset is beyond the end, another program has emptied the file.
      const from = position > end ? start : Math.max(begin, position);
      const to = Math.min(from + maxBytes, end);
      const rotated =
        from < start ? await readAt(this.rotatedPath, from - begin, Math.min(to, start) - from) : NOTHING;
      const fileFrom = Math.max(from, start);
      const current =
        to > fileFrom ? await readAt(this.path, fileFrom - this.#shift, to - fileFrom) : NOTHING;
      return { data: rotated.length === 0 ? current : Buffer.concat([rotated, current]), position: from };
    });
  }

  /**
   * Moves the content to the rotated file, which keeps up to `keepBytes`. Returns undefined if the content is smaller
   * than a block.
   */
  trim(keepBytes: number): Promise<TrimMode | undefined> {
    return this.#inTurn(async () => {
      const startOffset = (await this.#bounds()).start - this.#shift;
      const trimmed = await trimHead(this.path, this.rotatedPath, {
        startOffset,
        keepBytes,
        from: this.#mode,
      });
      if (trimmed === undefined) return undefined;
      this.#mode = trimmed.mode;
      this.#shift += trimmed.shiftBytes;
      this.#startOffset = trimmed.startOffset;
      return trimmed.mode;
    });
  }

  remove(): Promise<void> {
    return this.#inTurn(async () => {
      await removeLog(this.path, this.rotatedPath);
      this.#startOffset = undefined;
    });
  }

  async #bounds(seenSize?: number): Promise<LogBounds> {
    const [size, rotatedBytes] = await Promise.all([seenSize ?? sizeOf(this.path), sizeOf(this.rotatedPath)]);
    if (size === undefined) return { begin: this.#shift, start: this.#shift, end: this.#shift };
    this.#startOffset ??= await findStart(this.path);
    const start = this.#shift + Math.min(this.#startOffset, size);
    return { begin: start - (rotatedBytes ?? 0), start, end: this.#shift + size };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

const NOTHING = Buffer.alloc(0);

async function readAt(path: string, offset: number, length: number): Promise<Buffer> {
  await using file = await open(path, "r");
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await statIfThere(path))?.size;
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
