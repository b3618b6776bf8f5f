/**
 * The number of keys at which a chunk is split. An insertion within 512 pointers takes about 0.1 µs, and a million keys
 * make some 3,000 chunks, which a binary search finds in 12 steps.
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

  /**
   * Yields the keys with the prefix that are greater than `after`, in order. The index must not change during the
   * iteration.
   */
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

  /**
   * Returns the index of the chunk that contains the key, or to which it would be added: the last chunk that starts at or
   * before it.
   */
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

  /**
   * Splits a full chunk for a new key. Keys often arrive in order: then the full chunk stays as it is, and the key begins a
   * new one.
   */
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
