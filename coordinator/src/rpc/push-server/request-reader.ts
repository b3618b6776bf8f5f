import { CoordinatorError } from "../../errors.ts";
import { DEFAULT_WINDOW_BYTES } from "../../http2/frames.ts";

const PREFIX_BYTES = 5;
/**
 * The size limit of a request. It fits into the initial window of a stream, so no stream needs a
 * larger window.
 */
export const MAX_REQUEST_BYTES = DEFAULT_WINDOW_BYTES - PREFIX_BYTES;

/** Assembles the single message of a request. */
export class RequestReader {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  /** The length of the message, once its prefix has arrived. */
  #length: number | undefined;

  /** Appends a copy of a part of the body. Throws the error that refuses the call. */
  push(part: Buffer): void {
    this.#chunks.push(Buffer.from(part));
    this.#bytes += part.length;
    if (this.#bytes < PREFIX_BYTES) return;
    this.#length ??= Buffer.concat(this.#chunks).readUInt32BE(1);
    if (this.#length > MAX_REQUEST_BYTES)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `the request has ${this.#length} bytes; ${MAX_REQUEST_BYTES} are allowed`,
      );
    if (this.#bytes > PREFIX_BYTES + this.#length)
      throw new CoordinatorError("INVALID", "the call accepts only one request message");
  }

  /** Returns the message of the complete request. Throws the error that refuses the call. */
  message(): Buffer {
    const bytes = Buffer.concat(this.#chunks.splice(0));
    if (this.#length === undefined || bytes.length < PREFIX_BYTES + this.#length)
      throw new CoordinatorError("INVALID", "the request ended before its message was complete");
    if (bytes[0] !== 0)
      throw new CoordinatorError("UNIMPLEMENTED", "compressed requests are not supported on this port");
    return bytes.subarray(PREFIX_BYTES);
  }
}
