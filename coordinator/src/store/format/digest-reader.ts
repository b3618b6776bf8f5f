import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/** The number of bytes that are read at a time. Larger pieces would stay in the C library's heap afterwards. */
const CHUNK_BYTES = 64 * 1024;

const LINE_FEED = 0x0a;

/**
 * Reads a file from its beginning, by length or by line, and computes the SHA-256 of the returned bytes. Returned arrays
 * are slices of the read chunk.
 */
export class DigestReader {
  readonly #handle: FileHandle;
  readonly #hash = createHash("sha256");
  #buffer = Buffer.alloc(0);
  /** The number of returned bytes of the buffer. */
  #returned = 0;
  /** The number of hashed bytes of the buffer. All calls for one buffer are hashed at once. */
  #hashed = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async exactly(size: number): Promise<Buffer> {
    while (this.#buffer.length - this.#returned < size) {
      if (!(await this.#readMore())) throw new Error("it ends too early");
    }
    return this.#take(size);
  }

  /** Reads a line. Returns it with its line feed. */
  async line(bytesMax: number): Promise<string> {
    for (;;) {
      const from = this.#returned;
      const end = this.#buffer.subarray(from, from + bytesMax).indexOf(LINE_FEED);
      if (end !== -1) return this.#take(end + 1).toString("utf8");
      if (this.#buffer.length - from >= bytesMax) throw new Error("a line is too long");
      if (!(await this.#readMore())) throw new Error("it ends within a line");
    }
  }

  async atEnd(): Promise<boolean> {
    return this.#returned === this.#buffer.length && !(await this.#readMore());
  }

  /** Returns the SHA-256 of the bytes returned so far, in hex. */
  digest(): string {
    this.#hashReturned();
    return this.#hash.copy().digest("hex");
  }

  #take(size: number): Buffer {
    const from = this.#returned;
    this.#returned += size;
    return this.#buffer.subarray(from, from + size);
  }

  #hashReturned(): void {
    this.#hash.update(this.#buffer.subarray(this.#hashed, this.#returned));
    this.#hashed = this.#returned;
  }

  async #readMore(): Promise<boolean> {
    this.#hashReturned();
    const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(CHUNK_BYTES));
    this.#buffer = Buffer.concat([this.#buffer.subarray(this.#returned), buffer.subarray(0, bytesRead)]);
    this.#returned = 0;
    this.#hashed = 0;
    return bytesRead > 0;
  }
}
