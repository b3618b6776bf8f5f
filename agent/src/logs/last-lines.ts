import type { LogBounds, LogFile } from "./log-file.ts";

const STEP_BYTES = 64 * 1024;
const LINE_BREAK = 0x0a;

/**
 * Returns the position at which the last `count` lines begin. An unfinished last line counts as one. `within` is a
 * snapshot of the log; default: its current state.
 */
export async function findLastLines(file: LogFile, count: number, within?: LogBounds): Promise<number> {
  const { begin, end } = within ?? (await file.bounds());
  if (count <= 0) return end;
  let left = count;
  for (let to = end; to > begin; ) {
    const from = Math.max(begin, to - STEP_BYTES);
    const { data, position } = await file.read(from, to - from);
    for (let i = data.length - 1; i >= 0; i -= 1) {
      // The final line break ends a line but begins none.
      if (data[i] !== LINE_BREAK || position + i === end - 1) continue;
      left -= 1;
      if (left === 0) return position + i + 1;
    }
    // The head may have been removed meanwhile.
    if (position > from) return position;
    to = from;
  }
  return begin;
}

/**
 * Returns the last `count` lines as text, at most the last `maxBytes`. A line that is cut off at its beginning is left
 * out unless it is the only one.
 */
export async function readLastLines(file: LogFile, count: number, maxBytes: number): Promise<string> {
  const bounds = await file.bounds();
  const { end } = bounds;
  // Use the same bounds, because lines written meanwhile would otherwise count.
  const desired = await findLastLines(file, count, bounds);
  // One more byte shows whether the first line is complete.
  const from = Math.max(desired, end - maxBytes - 1);
  const { data } = await file.read(from, end - from);
  return lastText(data, maxBytes);
}

/** Returns whole lines from the end of the data, at most `maxBytes` of them. */
export function lastText(data: Buffer, maxBytes: number): string {
  if (data.length <= maxBytes) return data.toString();
  const lineBreak = data.indexOf(LINE_BREAK);
  const hasMore = lineBreak >= 0 && lineBreak < data.length - 1;
  const kept = hasMore ? data.subarray(lineBreak + 1) : data.subarray(data.length - maxBytes);
  return kept.subarray(hasMore ? 0 : firstCharacter(kept)).toString();
}

// Bytes 10xxxxxx continue a UTF-8 character that began before.
function firstCharacter(data: Buffer): number {
  let i = 0;
  while (i < 3 && ((data[i] ?? 0) & 0xc0) === 0x80) i += 1;
  return i;
}
