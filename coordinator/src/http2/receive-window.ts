import { ConnectionError } from "./connection-error.ts";
import { CODE, DEFAULT_WINDOW_BYTES, encodeNumber, FRAME } from "./frames.ts";
import type { ServerStream } from "./server-stream.ts";

/** The number of received bytes after which a window is extended: half of the peer's window. */
const RETURN_BYTES = 32 * 1024;

/**
 * The bytes that the peer may send on a connection (RFC 9113, section 5.2). Methods return the
 * WINDOW_UPDATE frames that are due.
 */
export class ReceiveWindow {
  #left = DEFAULT_WINDOW_BYTES;
  /** The received bytes by which the window was not extended yet. */
  #toReturn = 0;
  /** The number of bytes by which the window exceeds the default. */
  #widenedBytes = 0;

  /** Counts received bytes. Throws ConnectionError if there are too many. */
  use(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0)
      throw new ConnectionError(CODE.FLOW_CONTROL_ERROR, "the peer exceeds the window of the connection");
  }

  /** Gives bytes of streams that have ended back. */
  return(bytes: number): Buffer[] {
    this.#toReturn += bytes;
    const due = this.#toReturn;
    if (due < RETURN_BYTES) return [];
    this.#left += due;
    this.#toReturn = 0;
    return [encodeNumber(FRAME.WINDOW_UPDATE, 0, due)];
  }

  /** Gives the bytes that an open stream has received back, to the connection and to the stream. */
  extend(stream: ServerStream): Buffer[] {
    const bytes = stream.unreturned;
    if (stream.isClosed || bytes === 0) return [];
    stream.unreturned = 0;
    stream.owed += bytes;
    const frames = this.return(bytes);
    if (stream.owed < RETURN_BYTES || stream.hasRequest) return frames;
    frames.push(encodeNumber(FRAME.WINDOW_UPDATE, stream.id, stream.owed));
    stream.receiveWindow += stream.owed;
    stream.owed = 0;
    return frames;
  }

  /** Widens the windows of a new stream and of the connection to so many bytes. */
  widen(stream: ServerStream, bytes: number): Buffer[] {
    const extra = bytes - DEFAULT_WINDOW_BYTES;
    if (stream.isClosed || extra <= 0) return [];
    stream.receiveWindow += extra;
    const frames = [encodeNumber(FRAME.WINDOW_UPDATE, stream.id, extra)];
    const more = extra - this.#widenedBytes;
    if (more <= 0) return frames;
    this.#widenedBytes += more;
    this.#left += more;
    frames.push(encodeNumber(FRAME.WINDOW_UPDATE, 0, more));
    return frames;
  }
}
