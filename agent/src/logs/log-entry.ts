/** The name of a container's output stream. */
export type LogStream = "stdout" | "stderr";

export const LOG_STREAMS: readonly LogStream[] = ["stdout", "stderr"];

/** A line of one stream, or a piece of one. */
export interface LogEntry {
  readonly stream: LogStream;
  /** The time at which the entry was read, as RFC 3339 in UTC with milliseconds. Empty if unknown. */
  readonly stamp: string;
  /** Whether a line break follows. */
  readonly whole: boolean;
  readonly text: Uint8Array;
}

// A longer line becomes several entries, because other readers of this format expect no longer ones.
const TEXT_MAX_BYTES = 16 * 1024;
const LINE_BREAK = 0x0a;
const HEAD = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (stdout|stderr) ([FP]) /;
// The length of "2026-01-01T00:00:00.000Z stdout F ".
const HEAD_BYTES = 34;

/**
 * Encodes a piece of a stream as lines of a log file: `TIME STREAM F|P TEXT`, the format of Kubernetes' runtimes. P marks a piece
 * whose line continues in the stream's next entry. Each entry is self-contained, so a log can be cut between any two of them.
 */
export function encodeEntries(chunk: Buffer, stream: LogStream, atMs: number): Buffer {
  const stamp = new Date(atMs).toISOString();
  const whole = Buffer.from(`${stamp} ${stream} F `);
  const piece = Buffer.from(`${stamp} ${stream} P `);
  // One allocation for all entries, because one for each line would take ten times as much memory.
  const entries = Buffer.allocUnsafe(chunk.length + countEntries(chunk) * (HEAD_BYTES + 1));
  let bytes = 0;
  for (let at = 0; at < chunk.length; ) {
    const { end, ends } = entryAt(chunk, at);
    bytes += (ends ? whole : piece).copy(entries, bytes);
    bytes += chunk.copy(entries, bytes, at, end);
    entries[bytes] = LINE_BREAK;
    bytes += 1;
    at = ends ? end + 1 : end;
  }
  return entries.subarray(0, bytes);
}

/** Returns where the text of the entry at `at` ends, and whether its line ends with it. */
function entryAt(chunk: Buffer, at: number): { readonly end: number; readonly ends: boolean } {
  const lineBreak = chunk.indexOf(LINE_BREAK, at);
  const end = lineBreak < 0 ? chunk.length : lineBreak;
  return end - at > TEXT_MAX_BYTES
    ? { end: at + TEXT_MAX_BYTES, ends: false }
    : { end, ends: lineBreak >= 0 };
}

function countEntries(chunk: Buffer): number {
  let count = 0;
  for (let at = 0; at < chunk.length; count += 1) {
    const { end, ends } = entryAt(chunk, at);
    at = ends ? end + 1 : end;
  }
  return count;
}

/**
 * Decodes one line of a log file, without its line break. A line that isn't an entry is a message of the runtime and
 * returned unchanged.
 */
export function decodeEntry(line: Buffer): LogEntry {
  const [head, stamp = "", stream, mark] = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES)) ?? [];
  if (head === undefined || (stream !== "stdout" && stream !== "stderr"))
    return { stream: "stderr", stamp: "", whole: true, text: line };
  return { stream, stamp, whole: mark === "F", text: line.subarray(head.length) };
}
