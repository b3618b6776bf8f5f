/**
 * Split at so many keys: a splice within 512 pointers costs about 0.1 µs, and a million keys make some 3,000 chunks,
 * which a binary search finds in 12 steps.
 */
const CHUNK_KEYS_MAX = 512;

/** A sorted set of strings, as a list of sorted chunks. */
export class KeyIndex {
  readonly #chunks: string[][] = [];

  add(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) {
      this.#chunks.push([key]);
      return;
    }
    const position = lowerBound(chunk, key);
    if (chunk[position] === key) return;
    chunk.splice(position, 0, key);
    if (chunk.length > CHUNK_KEYS_MAX) this.#split(at, chunk, position);
  }

  delete(key: string): void {
    const at = this.#chunkOf(key);
    const chunk = this.#chunks[at];
    if (chunk === undefined) return;
    const position = lowerBound(chunk, key);
    if (chunk[position] !== key) return;
    chunk.splice(position, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** Keys with the prefix, in order, that come after `after`. The index must not change while it is read. */
  *keys(prefix: string, after = ""): Generator<string> {
    const start = after > prefix ? after : prefix;
    for (let at = this.#chunkOf(start); at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at] ?? [];
      for (let position = lowerBound(chunk, start); position < chunk.length; position++) {
        const key = chunk[position] ?? "";
        if (!key.startsWith(prefix)) return;
        if (key > after) yield key;
      }
    }
  }

  /** The chunk that holds the key or where it belongs: the last one that starts at or before it. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#chunks[middle]?.[0] ?? "") <= key) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Keys mostly arrive in order: then the full chunk stays full, and only the new key moves on. */
  #split(at: number, chunk: string[], position: number): void {
    const appended = position === chunk.length - 1;
    this.#chunks.splice(at + 1, 0, chunk.splice(appended ? position : chunk.length >>> 1));
  }
}

function lowerBound(sorted: readonly string[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
