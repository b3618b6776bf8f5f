import { decodeEntry, LOG_STREAMS, type LogEntry, type LogStream } from "./log-entry.ts";

export interface EntryLinesOptions {
  /** Restricts the lines to one stream. */
  readonly stream?: LogStream;
  /** Leaves out lines that began before. RFC 3339 in UTC with milliseconds. */
  readonly since?: string;
  readonly timestamps?: boolean;
  /** Leaves out entries of a stream that begin before its position. */
  readonly from?: Readonly<Record<LogStream, number>>;
}

const LINE_BREAK = 0x0a;
const LINE_BREAK_BYTES = Buffer.from("\n");
const NOTHING = Buffer.alloc(0);
// The limit of a buffered unfinished line. Longer lines are shown in parts.
const HELD_MAX_BYTES = 64 * 1024;

interface HeldLine {
  readonly stamp: string;
  readonly parts: Uint8Array[];
  bytes: number;
}

/** Joins the entries of a log file to the complete lines that a container wrote, in the order in which they ended. */
export class EntryLines {
  readonly #options: EntryLinesOptions;
  readonly #held = new Map<LogStream, HeldLine>();
  /** The unfinished line of the log file. */
  #rest: Buffer = NOTHING;
  #next: number | undefined;
  /** The stream whose unfinished line was output last. */
  #open: LogStream | undefined;

  constructor(options: EntryLinesOptions) {
    this.#options = options;
  }

  /** Adds data of the file that begins at `position`. Lines are lost if the previous data ended elsewhere. */
  add(data: Buffer, position: number): Buffer {
    if (position !== this.#next) this.#rest = NOTHING;
    this.#next = position + data.length;
    let start = position - this.#rest.length;
    const bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    const out: Uint8Array[] = [];
    let at = 0;
    for (let next = bytes.indexOf(LINE_BREAK); next >= 0; next = bytes.indexOf(LINE_BREAK, at)) {
      // An interrupted write may have left an empty entry.
      if (next > at) this.#add(decodeEntry(bytes.subarray(at, next)), start, out);
      start += next + 1 - at;
      at = next + 1;
    }
    this.#rest = bytes.subarray(at);
    return Buffer.concat(out);
  }

  /** Returns the known parts of incomplete lines. */
  flush(): Buffer {
    const out: Uint8Array[] = [];
    for (const stream of LOG_STREAMS) this.#showHeld(stream, out);
    return Buffer.concat(out);
  }

  #add({ stream, stamp, whole, text }: LogEntry, position: number, out: Uint8Array[]): void {
    const { stream: desired, from } = this.#options;
    if (desired !== undefined && stream !== desired) return;
    if (from !== undefined && position < from[stream]) return;
    const held = this.#held.get(stream) ?? { stamp, parts: [], bytes: 0 };
    this.#held.set(stream, held);
    held.parts.push(text);
    held.bytes += text.length;
    if (!whole && held.bytes < HELD_MAX_BYTES) return;
    this.#showHeld(stream, out);
    if (whole) this.#end(stream, out);
  }

  #showHeld(stream: LogStream, out: Uint8Array[]): void {
    const held = this.#held.get(stream);
    if (held === undefined) return;
    this.#held.delete(stream);
    const { since, timestamps } = this.#options;
    // The beginning of this line was already shown.
    const goesOn = this.#open === stream;
    if (since !== undefined && !goesOn && held.stamp !== "" && held.stamp < since) return;
    // The other stream's line isn't finished, and two lines must not share one line of output.
    if (this.#open !== undefined && !goesOn) out.push(LINE_BREAK_BYTES);
    if (timestamps && !goesOn) out.push(Buffer.from(`${held.stamp || "-"} `));
    out.push(...held.parts);
    this.#open = stream;
  }

  #end(stream: LogStream, out: Uint8Array[]): void {
    if (this.#open !== stream) return;
    out.push(LINE_BREAK_BYTES);
    this.#open = undefined;
  }
}
