import { createHash, type Hash } from "node:crypto";

/** A SHA-256 in hexadecimal, and a line feed. */
const LAST_LINE_BYTES = 65;

/** Checks a backup as it arrives: its last line is the SHA-256 of everything before that line. */
export class TrailingDigest {
  readonly #hash: Hash = createHash("sha256");
  #tail: Buffer = Buffer.alloc(0);

  take(chunk: Buffer): void {
    const all = Buffer.concat([this.#tail, chunk]);
    const end = Math.max(0, all.length - LAST_LINE_BYTES);
    this.#hash.update(all.subarray(0, end));
    this.#tail = all.subarray(end);
  }

  /** Reports whether everything that was taken is a whole backup. */
  matches(): boolean {
    return this.#tail.toString("latin1") === `${this.#hash.digest("hex")}\n`;
  }
}
