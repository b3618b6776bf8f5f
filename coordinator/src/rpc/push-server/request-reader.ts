import { CoordinatorError } from "../../errors.ts";
import { DEFAULT_WINDOW_BYTES } from "../../http2/frames.ts";

const PREFIX_BYTES = 5;
/** A request fits into the window that a stream begins with, so that no stream ever needs more. */
export const MAX_REQUEST_BYTES = DEFAULT_WINDOW_BYTES - PREFIX_BYTES;

/** Collects the one message of a request. */
export class RequestReader {
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  /** The length of the message, once its prefix has arrived. */
  #length: number | undefined;

  /** Takes a part of the body, and copies it. Throws what refuses the call. */
  take(part: Buffer): void {
    this.#parts.push(Buffer.from(part));
    this.#bytes += part.length;
    if (this.#bytes < PREFIX_BYTES) return;
    this.#length ??= Buffer.concat(this.#parts).readUInt32BE(1);
    if (this.#length > MAX_REQUEST_BYTES)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `the request has ${this.#length} bytes; ${MAX_REQUEST_BYTES} are allowed`,
      );
    if (this.#bytes > PREFIX_BYTES + this.#length)
      throw new CoordinatorError("INVALID", "the call takes one request message, and received more");
  }

  /** Returns the message of the complete request. Throws what refuses the call. */
  message(): Buffer {
    const bytes = Buffer.concat(this.#parts.splice(0));
    if (this.#length === undefined || bytes.length < PREFIX_BYTES + this.#length)
      throw new CoordinatorError("INVALID", "the request ended before its message was complete");
    if (bytes[0] !== 0)
      throw new CoordinatorError("UNIMPLEMENTED", "compressed requests are not supported on this port");
    return bytes.subarray(PREFIX_BYTES);
  }
}
