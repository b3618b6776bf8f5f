const HEADER_BYTES = 12;
const SOA = 6;
const OPT = 41;
const NAME_ERROR = 3;

export interface Ttls {
  /** The TTL of the whole answer. */
  readonly seconds: number;
  readonly offsets: readonly number[];
}

/**
 * Returns the offsets of an answer's TTLs, and the smallest TTL. A negative answer's TTL comes from its SOA record.
 * Returns undefined if the answer must not be cached because it is an error, truncated or malformed.
 */
export function ttlsOf(bytes: Buffer): Ttls | undefined {
  try {
    const flags = bytes.readUInt16BE(2);
    const rcode = flags & 15;
    const isTruncated = (flags & 0x0200) !== 0;
    if (isTruncated || (rcode !== 0 && rcode !== NAME_ERROR)) return undefined;
    const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
    let at = HEADER_BYTES;
    for (let i = 0; i < (questions ?? 0); i++) at = afterName(bytes, at) + 4;
    const offsets: number[] = [];
    let seconds = Number.POSITIVE_INFINITY;
    let hasSoa = false;
    const records = (answers ?? 0) + (authorities ?? 0) + (additionals ?? 0);
    for (let i = 0; i < records; i++) {
      at = afterName(bytes, at);
      const type = bytes.readUInt16BE(at);
      const ttl = bytes.readUInt32BE(at + 4);
      const length = bytes.readUInt16BE(at + 8);
      if (type !== OPT) {
        offsets.push(at + 4);
        seconds = Math.min(seconds, ttl);
      }
      const end = at + 10 + length;
      if (end > bytes.length) return undefined;
      if (type === SOA) {
        hasSoa = true;
        seconds = Math.min(seconds, bytes.readUInt32BE(end - 4));
      }
      at = end;
    }
    if (offsets.length === 0 || ((answers ?? 0) === 0 && !hasSoa)) return undefined;
    return { seconds, offsets };
  } catch {
    return undefined;
  }
}

function afterName(bytes: Buffer, start: number): number {
  let at = start;
  while (true) {
    const length = bytes.readUInt8(at);
    if (length === 0) return at + 1;
    if ((length & 0xc0) === 0xc0) return at + 2;
    at += length + 1;
  }
}
