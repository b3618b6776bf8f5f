import { ConnectionError } from "./connection-error.ts";
import { CODE, FRAME_HEADER_BYTES, type Frame, MAX_FRAME_BYTES, PREFACE } from "./frames.ts";

/** Is shared, because each empty buffer takes 200 bytes. */
const NO_BYTES: Buffer = Buffer.alloc(0);

/** Splits received bytes into frames. Buffers at most one incomplete frame. */
export class FrameReader {
  /** The beginning of an incomplete frame or preface. */
  #rest = NO_BYTES;
  #hasPreface = false;

  /** Processes bytes, and calls back for each complete frame. Throws ConnectionError. */
  read(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = this.#hasPreface ? 0 : this.#readPreface(bytes);
    while (this.#hasPreface && bytes.length - at >= FRAME_HEADER_BYTES) {
      const length = bytes.readUIntBE(at, 3);
      if (length > MAX_FRAME_BYTES)
        throw new ConnectionError(CODE.FRAME_SIZE_ERROR, `a frame of ${length} bytes is larger than allowed`);
      const start = at + FRAME_HEADER_BYTES;
      if (bytes.length < start + length) break;
      const frame = {
        type: bytes[at + 3] ?? 0,
        flags: bytes[at + 4] ?? 0,
        streamId: bytes.readUInt32BE(at + 5) & 0x7fff_ffff,
        payload: bytes.subarray(start, start + length),
      };
      at = start + length;
      onFrame(frame);
    }
    // A slice would keep the whole chunk in memory.
    this.#rest = at === bytes.length ? NO_BYTES : Buffer.from(bytes.subarray(at));
  }

  #readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, PREFACE.length);
    if (bytes.compare(PREFACE, 0, length, 0, length) !== 0)
      throw new ConnectionError(
        CODE.PROTOCOL_ERROR,
        "the connection does not begin with the preface of HTTP/2",
      );
    if (length < PREFACE.length) return 0;
    this.#hasPreface = true;
    return length;
  }
}
