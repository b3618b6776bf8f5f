import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { findStart, removeLog, type TrimMode, trimHead } from "./trim-head.ts";

/**
 * Positions count the bytes of a log from its beginning when it was opened (rotated bytes are negative). They stay valid when the
 * log's head is removed.
 */
export interface LogBounds {
  /** The oldest byte there is. */
  readonly begin: number;
  /** The position at which the file begins. Older data was rotated out of it. */
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
  /** The position of the first byte. It is later than requested if the requested bytes are gone. */
  readonly position: number;
}

/**
 * A log that containerd's shim appends to, and what was rotated out of it (`<path>.1`), read as one.
 * Reading and trimming take turns, so that no reader sees the file change under it.
 */
export class LogFile {
  readonly path: string;
  #shift = 0;
  /** Offset of the first byte that isn't in a hole; unknown until looked for. */
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

  /** Offsets in the file plus this are positions. */
  get shift(): number {
    return this.#shift;
  }

  /** A missing file is an empty one. */
  bounds(): Promise<LogBounds> {
    return this.#inTurn(() => this.#bounds());
  }

  /** Returns `bounds` with the time at which they were read. Undefined if there is no file. */
  look(): Promise<LogSnapshot | undefined> {
    return this.#inTurn(async () => {
      const seen = await statIfThere(this.path);
      if (seen === undefined) return undefined;
      // Both come from one call: a file that grows later has a later time with its later size.
      const times = { changedMs: Math.floor(seen.mtimeMs), bornMs: Math.floor(seen.birthtimeMs) };
      return { ...(await this.#bounds(seen.size)), ...times };
    });
  }

  /** `maxBytes` from `position` on, or up to the end; empty at the end. */
  read(position: number, maxBytes: number): Promise<LogChunk> {
    return this.#inTurn(async () => {
      const { begin, start, end } = await this.#bounds();
      // Behind the end: someone else has emptied the file.
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

  /** Moves what is there to the rotated file, of which up to `keepBytes` are kept. Undefined if there is less than a block. */
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
