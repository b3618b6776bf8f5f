import { createHash, type Hash } from "node:crypto";

/** The length of the last line: a SHA-256 digest in hexadecimal, and a line feed. */
const LAST_LINE_BYTES = 65;

/**
 * Verifies a backup while it is received: its last line is the SHA-256 digest of everything before
 * that line.
 */
export class TrailingDigest {
  readonly #hash: Hash = createHash("sha256");
  #tail: Buffer = Buffer.alloc(0);

  update(chunk: Buffer): void {
    const all = Buffer.concat([this.#tail, chunk]);
    const end = Math.max(0, all.length - LAST_LINE_BYTES);
    this.#hash.update(all.subarray(0, end));
    this.#tail = all.subarray(end);
  }

  /** Reports whether the data passed to `update` is a complete backup. */
  matches(): boolean {
    return this.#tail.toString("latin1") === `${this.#hash.digest("hex")}\n`;
  }
}
