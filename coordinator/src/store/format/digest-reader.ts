import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/** The number of bytes that are read at a time. Larger pieces would stay in the C library's heap afterwards. */
const CHUNK_BYTES = 64 * 1024;

const LINE_FEED = 0x0a;

/** Reads a file from its beginning, by length or by line, and computes the SHA-256 of the read bytes. */
export class DigestReader {
  readonly #handle: FileHandle;
  readonly #hash = createHash("sha256");
  #buffer = Buffer.alloc(0);

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async exactly(size: number): Promise<Buffer> {
    while (this.#buffer.length < size) {
      if (!(await this.#readMore())) throw new Error("it ends too early");
    }
    return this.#consume(size);
  }

  /** Reads a line. Returns it with its line feed. */
  async line(bytesMax: number): Promise<string> {
    for (;;) {
      const end = this.#buffer.subarray(0, bytesMax).indexOf(LINE_FEED);
      if (end !== -1) return this.#consume(end + 1).toString("utf8");
      if (this.#buffer.length >= bytesMax) throw new Error("a line is too long");
      if (!(await this.#readMore())) throw new Error("it ends within a line");
    }
  }

  async atEnd(): Promise<boolean> {
    return this.#buffer.length === 0 && !(await this.#readMore());
  }

  /** Returns the SHA-256 of the bytes read so far, in hex. */
  digest(): string {
    return this.#hash.copy().digest("hex");
  }

  #consume(size: number): Buffer {
    // A slice would keep the whole chunk in memory as long as one of its records.
    const taken = Buffer.from(this.#buffer.subarray(0, size));
    this.#buffer = this.#buffer.subarray(size);
    this.#hash.update(taken);
    return taken;
  }

  async #readMore(): Promise<boolean> {
    const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(CHUNK_BYTES));
    this.#buffer = Buffer.concat([this.#buffer, buffer.subarray(0, bytesRead)]);
    return bytesRead > 0;
  }
}
