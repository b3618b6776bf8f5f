/** Splits a stream of bytes into lines. Drops each line that is longer than `maxBytes`. */
export class LineSplitter {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the lines that `chunk` completes, without their line breaks. */
  push(chunk: Buffer): readonly string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      this.#add(chunk.subarray(start, end));
      if (this.#bytes <= this.#maxBytes) lines.push(Buffer.concat(this.#chunks).toString());
      this.#chunks = [];
      this.#bytes = 0;
      start = end + 1;
    }
    this.#add(chunk.subarray(start));
    return lines;
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) this.#chunks = [];
    else if (part.length > 0) this.#chunks.push(part);
  }
}
