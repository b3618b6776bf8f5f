import { CoordinatorError } from "../../errors.ts";

const PREFIX_BYTES = 5;

/** Splits the body of a request into its messages. */
export class MessageReader {
  readonly #maxBytes: number;
  /** Is emptied and not replaced: an old array would keep its last buffers alive until the next full collection. */
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  /** The size of the next message with its prefix, once the prefix has arrived. */
  #size: number | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether all received bytes were read. */
  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Appends a copy of a part of the body. */
  push(part: Buffer): void {
    if (part.length === 0) return;
    this.#chunks.push(Buffer.from(part));
    this.#bytes += part.length;
  }

  /** Removes and returns the next message; undefined if it is incomplete. Throws the error that refuses the call. */
  next(): Buffer | undefined {
    if (this.#bytes < (this.#size ?? PREFIX_BYTES)) return undefined;
    const bytes = this.#joined();
    this.#size ??= PREFIX_BYTES + this.#lengthOf(bytes);
    if (this.#bytes < this.#size) return undefined;
    const size = this.#size;
    this.#chunks.length = 0;
    if (bytes.length > size) this.#chunks.push(bytes.subarray(size));
    this.#bytes = bytes.length - size;
    this.#size = undefined;
    return bytes.subarray(PREFIX_BYTES, size);
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first !== undefined) return first;
    const bytes = Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks.length = 0;
    this.#chunks.push(bytes);
    return bytes;
  }

  #lengthOf(bytes: Buffer): number {
    if (bytes[0] !== 0)
      throw new CoordinatorError("UNIMPLEMENTED", "compressed requests are not supported on this port");
    const length = bytes.readUInt32BE(1);
    if (length <= this.#maxBytes) return length;
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `the request has ${length} bytes; ${this.#maxBytes} are allowed`,
    );
  }
}
