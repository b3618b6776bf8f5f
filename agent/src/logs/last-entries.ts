import { decodeEntry, LOG_STREAMS, type LogEntry, type LogStream } from "./log-entry.ts";
import type { LogFile } from "./log-file.ts";

const STEP_BYTES = 64 * 1024;
// How far before an entry the beginning of its line is searched.
const FRONT_MAX_BYTES = 64 * 1024;
const LINE_BREAK = 0x0a;

/**
 * Returns the positions at which the last `count` lines of one stream or both begin, one for each stream. An unfinished line
 * counts as one.
 */
export async function findLastEntries(
  file: LogFile,
  count: number,
  stream: LogStream | undefined,
): Promise<Readonly<Record<LogStream, number>>> {
  const { begin, end } = await file.bounds();
  const search = new Search(count, stream === undefined ? LOG_STREAMS : [stream], end);
  let carried = Buffer.alloc(0);
  for (let to = end; to > begin && !search.done; ) {
    const from = Math.max(begin, to - STEP_BYTES);
    const piece = await file.read(from, to - from);
    // The head may have been removed meanwhile.
    if (piece.position > from) break;
    const bytes = Buffer.concat([piece.data, carried]);
    // The text before the first line break may begin in an earlier piece.
    const first = from === begin ? 0 : bytes.indexOf(LINE_BREAK) + 1;
    if (first > 0 || from === begin) {
      lookBack(bytes, first, from, search);
      carried = bytes.subarray(0, first);
    } else carried = bytes;
    to = from;
  }
  return search.result();
}

/** Passes the lines in `bytes` to the search, the last one first, back to offset `first`. */
function lookBack(bytes: Buffer, first: number, position: number, search: Search): void {
  for (let to = bytes.length; to > first && !search.done; ) {
    const breakBefore = to < 2 ? -1 : bytes.lastIndexOf(LINE_BREAK, to - 2);
    const at = breakBefore + 1;
    const ended = bytes[to - 1] === LINE_BREAK;
    const line = bytes.subarray(at, ended ? to - 1 : to);
    // An unended line is still being written.
    if (ended && line.length > 0) search.see(decodeEntry(line), position + at, position + to);
    to = at;
  }
}

class Search {
  readonly #count: number;
  readonly #desired: readonly LogStream[];
  readonly #from = new Map<LogStream, number>();
  readonly #seen = new Set<LogStream>();
  #lines = 0;
  #position: number;
  #limit = Number.NEGATIVE_INFINITY;

  constructor(count: number, desired: readonly LogStream[], end: number) {
    this.#count = count;
    this.#desired = desired;
    this.#position = end;
  }

  get done(): boolean {
    return this.#from.size === this.#desired.length || this.#position < this.#limit || this.#count <= 0;
  }

  /** Processes the entry before those processed so far, which extends from `begin` to `end`. */
  see({ stream, whole }: LogEntry, begin: number, end: number): void {
    this.#position = begin;
    if (!this.#desired.includes(stream) || this.#from.has(stream)) return;
    const endsLine = whole || !this.#seen.has(stream);
    this.#seen.add(stream);
    if (!endsLine) return;
    if (this.#lines < this.#count) {
      this.#lines += 1;
      return;
    }
    this.#from.set(stream, end);
    if (this.#limit === Number.NEGATIVE_INFINITY) this.#limit = begin - FRONT_MAX_BYTES;
  }

  result(): Record<LogStream, number> {
    const of = (stream: LogStream) => this.#from.get(stream) ?? this.#position;
    return { stdout: of("stdout"), stderr: of("stderr") };
  }
}
