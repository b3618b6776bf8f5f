import { ttlsOf } from "./ttls.ts";

export interface AnswerCacheOptions {
  /** A monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
  readonly maxAnswers?: number;
  readonly maxBytes?: number;
}

interface Kept {
  readonly bytes: Buffer;
  readonly atMs: number;
  readonly goodMs: number;
  /** The offsets of the answer's TTLs. */
  readonly offsets: readonly number[];
}

const DEFAULT_MAX_ANSWERS = 5_000;
const DEFAULT_MAX_BYTES = 2 * 1024 * 1024;
/** The highest TTL, in seconds. It bounds the lifetime of a wrong answer. */
const LONGEST_SECONDS = 300;

/** Caches the answers of other servers for their TTL. Evicts the entries that have been unused for the longest time. */
export class AnswerCache {
  readonly #options: Required<AnswerCacheOptions>;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(options: AnswerCacheOptions) {
    this.#options = { maxAnswers: DEFAULT_MAX_ANSWERS, maxBytes: DEFAULT_MAX_BYTES, ...options };
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Returns the cached answer with the given query id, and with TTLs reduced by the answer's age. */
  get(key: string, id: number): Buffer | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    const ageMs = this.#options.monotonicMs() - kept.atMs;
    if (ageMs >= kept.goodMs) {
      this.#drop(key, kept);
      return undefined;
    }
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const answer = Buffer.from(kept.bytes);
    answer.writeUInt16BE(id, 0);
    const age = Math.floor(ageMs / 1000);
    for (const offset of kept.offsets)
      answer.writeUInt32BE(Math.max(0, answer.readUInt32BE(offset) - age), offset);
    return answer;
  }

  /** Stores an answer if it is cacheable. */
  put(key: string, bytes: Buffer): void {
    const ttls = ttlsOf(bytes);
    const before = this.#kept.get(key);
    if (before !== undefined) this.#drop(key, before);
    if (ttls === undefined || ttls.seconds === 0) return;
    const goodMs = Math.min(LONGEST_SECONDS, ttls.seconds) * 1000;
    this.#kept.set(key, { bytes, atMs: this.#options.monotonicMs(), goodMs, offsets: ttls.offsets });
    this.#bytes += bytes.length;
    const { maxAnswers, maxBytes } = this.#options;
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= maxAnswers && this.#bytes <= maxBytes) break;
      this.#drop(oldest, kept);
    }
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= kept.bytes.length;
  }
}
