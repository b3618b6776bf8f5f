/** The limit of buffered data without a line end. A longer line is passed on in parts. */
const MAX_PENDING_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** Splits a byte stream into whole lines, so that several streams can be mixed. */
export class Lines {
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;

  /**
   * Returns all lines that the chunk completes, as one piece that ends with a line feed; empty if
   * there are none.
   */
  push(chunk: Uint8Array): Uint8Array {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end === 0 && this.#pendingBytes + chunk.length <= MAX_PENDING_BYTES) {
      this.#keep(chunk);
      return new Uint8Array();
    }
    const whole =
      end === 0
        ? [...this.#pending, chunk, Buffer.of(LINE_FEED)]
        : [...this.#pending, chunk.subarray(0, end)];
    this.#pending = [];
    this.#pendingBytes = 0;
    if (end > 0 && end < chunk.length) this.#keep(chunk.subarray(end));
    return Buffer.concat(whole);
  }

  /** Returns the remaining data, with a line feed added if it has none. */
  end(): Uint8Array {
    if (this.#pendingBytes === 0) return new Uint8Array();
    const rest = Buffer.concat([...this.#pending, Buffer.of(LINE_FEED)]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return rest;
  }

  #keep(chunk: Uint8Array): void {
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.length;
  }
}

/** Adds a prefix to each line of a piece that ends with a line feed. */
export function prefixLines(lines: Uint8Array, prefix: string): Uint8Array {
  const head = Buffer.from(prefix);
  const parts: Uint8Array[] = [];
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(LINE_FEED, start) + 1 || lines.length;
    parts.push(head, lines.subarray(start, end));
    start = end;
  }
  return Buffer.concat(parts);
}
