import { abuse, ConnectionError } from "./connection-error.ts";
import { CODE, FLAG, FRAME, type Frame } from "./frames.ts";

/** A complete header block. */
export interface HeaderBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  /** Whether the stream depends on itself, which is a stream error. */
  readonly isSelfDependent: boolean;
  readonly bytes: Buffer;
}

/**
 * The size limit of an encoded block: twice the limit of decoded fields, which are usually larger.
 */
const MAX_BLOCK_BYTES = 32 * 1024;
const MAX_PARTS = 8;
const PRIORITY_BYTES = 5;

/** Joins HEADERS and CONTINUATION frames. No other frame may be in between. */
export class HeaderBlocks {
  #open: (Omit<HeaderBlock, "bytes"> & { readonly parts: Buffer[]; length: number }) | undefined;

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /**
   * Adds a HEADERS or CONTINUATION frame. Returns the block if it is complete. Throws
   * ConnectionError.
   */
  push(frame: Frame): HeaderBlock | undefined {
    const part = frame.type === FRAME.HEADERS ? this.#begin(frame) : frame.payload;
    const open = this.#open;
    if (open === undefined || open.streamId !== frame.streamId)
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "a CONTINUATION frame follows no header block");
    open.parts.push(part);
    open.length += part.length;
    if (open.length > MAX_BLOCK_BYTES || open.parts.length > MAX_PARTS)
      throw abuse("HEADERS", "a header block is too large");
    if ((frame.flags & FLAG.END_HEADERS) === 0) return undefined;
    this.#open = undefined;
    const { streamId, endsStream, isSelfDependent, parts } = open;
    return {
      streamId,
      endsStream,
      isSelfDependent,
      bytes: parts.length === 1 ? part : Buffer.concat(parts),
    };
  }

  #begin(frame: Frame): Buffer {
    const { streamId, flags } = frame;
    if (streamId % 2 === 0)
      throw new ConnectionError(CODE.PROTOCOL_ERROR, `stream ${streamId} is not a stream of a client`);
    let bytes = withoutPadding(frame);
    let isSelfDependent = false;
    if ((flags & FLAG.PRIORITY) !== 0) {
      if (bytes.length < PRIORITY_BYTES)
        throw new ConnectionError(CODE.FRAME_SIZE_ERROR, "a HEADERS frame is too short");
      isSelfDependent = dependencyOf(bytes) === streamId;
      bytes = bytes.subarray(PRIORITY_BYTES);
    }
    const endsStream = (flags & FLAG.END_STREAM) !== 0;
    this.#open = { streamId, endsStream, isSelfDependent, parts: [], length: 0 };
    return bytes;
  }
}

/** Returns the payload of a frame without its padding. Throws ConnectionError. */
export function withoutPadding({ flags, payload }: Frame): Buffer {
  if ((flags & FLAG.PADDED) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding >= payload.length)
    throw new ConnectionError(CODE.PROTOCOL_ERROR, "the padding of a frame is longer than the frame");
  return payload.subarray(1, payload.length - padding);
}

/** Returns the id of the stream in a priority field, which must have at least four bytes. */
export function dependencyOf(priority: Buffer): number {
  return priority.readUInt32BE(0) & 0x7fff_ffff;
}
