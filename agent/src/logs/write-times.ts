import { crc32 } from "node:zlib";

/** The time at which the bytes from the previous `end` to this one arrived: `atMs`, or some time from `fromMs` to `atMs`. */
export interface WriteTime {
  readonly end: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly fromMs?: number;
}

/** Returns the record that covers the byte at `position`, or undefined. The list is in order of `end`. */
export function writeTimeOf(writeTimes: readonly WriteTime[], position: number): WriteTime | undefined {
  let low = 0;
  let high = writeTimes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((writeTimes[middle]?.end ?? 0) > position) high = middle;
    else low = middle + 1;
  }
  return writeTimes[low];
}

/**
 * Returns the position from which on data may have arrived at `sinceMs` or later. All data before it is certainly
 * older. Undefined if no data is that new.
 */
export function positionSince(
  writeTimes: readonly WriteTime[],
  sinceMs: number,
  begin: number,
): number | undefined {
  const first = writeTimes.findIndex((it) => it.atMs >= sinceMs);
  if (first < 0) return undefined;
  return Math.max(begin, writeTimes[first - 1]?.end ?? begin);
}

/**
 * Reduces write times to at most `most` entries without losing bytes: keeps the newer half and merges pairs of the
 * older half into intervals. Old times therefore become less exact as new ones arrive.
 */
export function thinWriteTimes(writeTimes: readonly WriteTime[], most: number): readonly WriteTime[] {
  let list = writeTimes;
  while (list.length > most) {
    const middle = list.length - (list.length >> 1);
    const merged: WriteTime[] = [];
    for (let i = 0; i < middle; i += 2) merged.push(merge(list.slice(i, Math.min(i + 2, middle))));
    if (merged.length === middle) return [merge(list)];
    list = [...merged, ...list.slice(middle)];
  }
  return list;
}

function merge(list: readonly WriteTime[]): WriteTime {
  const [first, last] = [list[0], list.at(-1)];
  if (first === undefined || last === undefined) throw new Error("nothing to merge");
  const fromMs = first.fromMs ?? first.atMs;
  return fromMs === last.atMs ? { end: last.end, atMs: last.atMs } : { ...last, fromMs };
}

// The length and the checksum. With them, an index that a power failure truncated can be read as far as it is intact.
const FRAME_HEAD_BYTES = 8;

/**
 * Encodes write times as a frame that can be appended to others. Each `end` is stored as its difference from `shift`.
 */
export function encodeWriteTimes(writeTimes: readonly WriteTime[], shift: number): Buffer {
  const numbers: number[] = [];
  let before: WriteTime = { end: 0, atMs: 0 };
  for (const arrival of writeTimes) {
    const { end, atMs, fromMs } = { ...arrival, end: arrival.end - shift };
    putSigned(numbers, end - before.end);
    putSigned(numbers, atMs - before.atMs);
    // Stores the length plus one; 0 means that there is no interval.
    putUnsigned(numbers, fromMs === undefined ? 0 : Math.max(0, atMs - fromMs) + 1);
    before = { end, atMs };
  }
  const payload = Buffer.from(numbers);
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(payload.length, 0);
  head.writeUInt32BE(crc32(payload), 4);
  return Buffer.concat([head, payload]);
}

/** Decodes all complete frames. `wholeBytes` is the offset of the incomplete rest. */
export function decodeWriteTimes(
  bytes: Buffer,
  shift: number,
): { readonly writeTimes: WriteTime[]; readonly wholeBytes: number } {
  const writeTimes: WriteTime[] = [];
  let at = 0;
  while (at + FRAME_HEAD_BYTES <= bytes.length) {
    const next = at + FRAME_HEAD_BYTES + bytes.readUInt32BE(at);
    const payload = bytes.subarray(at + FRAME_HEAD_BYTES, next);
    if (
      next > bytes.length ||
      next === at + FRAME_HEAD_BYTES ||
      crc32(payload) !== bytes.readUInt32BE(at + 4)
    )
      break;
    const reader = new NumberReader(payload);
    let [end, atMs] = [0, 0];
    while (!reader.done) {
      end += reader.signed();
      atMs += reader.signed();
      const length = reader.unsigned();
      writeTimes.push({ end: end + shift, atMs, ...(length > 0 && { fromMs: atMs - (length - 1) }) });
    }
    at = next;
  }
  return { writeTimes, wholeBytes: at };
}

// Seven bits in each byte, lowest first. Bit operators can't be used, because they are limited to 32 bits.
function putUnsigned(numbers: number[], value: number): void {
  let rest = Math.round(value);
  while (rest >= 0x80) {
    numbers.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  numbers.push(rest);
}

function putSigned(numbers: number[], value: number): void {
  const whole = Math.round(value);
  putUnsigned(numbers, whole < 0 ? -whole * 2 - 1 : whole * 2);
}

class NumberReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  unsigned(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte % 0x80) * factor;
      if (byte < 0x80) return value;
    }
  }

  signed(): number {
    const value = this.unsigned();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
