/**
 * The bytes with which a client begins. This file has the sizes, numbers and encodings of HTTP/2
 * frames (RFC 9113, sections 4 and 6).
 */
export const PREFACE: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
/** The size limit of frames: the smallest limit that a peer may set, which both sides use. */
export const MAX_FRAME_BYTES = 16_384;
export const DEFAULT_WINDOW_BYTES = 65_535;
export const MAX_WINDOW_BYTES = 2 ** 31 - 1;

export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAG = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

export const SETTING = {
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

export const CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;

/** A received frame. The payload may share memory with the data read from the socket. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Returns a frame whose payload, from `FRAME_HEADER_BYTES` on, must be filled by the caller. */
export function allocateFrame(type: number, flags: number, streamId: number, length: number): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + length);
  frame[0] = length >>> 16;
  frame[1] = length >>> 8;
  frame[2] = length;
  frame[3] = type;
  frame[4] = flags;
  frame[5] = streamId >>> 24;
  frame[6] = streamId >>> 16;
  frame[7] = streamId >>> 8;
  frame[8] = streamId;
  return frame;
}

export function encodeFrame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const frame = allocateFrame(type, flags, streamId, payload.length);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** Encodes HEADERS or trailers, with as many CONTINUATION frames as necessary. */
export function encodeHeaders(streamId: number, block: Buffer, endsStream: boolean): Buffer {
  const ending = endsStream ? FLAG.END_STREAM : 0;
  if (block.length <= MAX_FRAME_BYTES)
    return encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS | ending, streamId, block);
  const frames = [encodeFrame(FRAME.HEADERS, ending, streamId, block.subarray(0, MAX_FRAME_BYTES))];
  for (let at = MAX_FRAME_BYTES; at < block.length; at += MAX_FRAME_BYTES) {
    const part = block.subarray(at, at + MAX_FRAME_BYTES);
    const flags = at + part.length === block.length ? FLAG.END_HEADERS : 0;
    frames.push(encodeFrame(FRAME.CONTINUATION, flags, streamId, part));
  }
  return Buffer.concat(frames);
}

export function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const frame = allocateFrame(FRAME.SETTINGS, 0, 0, 6 * settings.length);
  for (const [index, [id, value]] of settings.entries()) {
    frame.writeUInt16BE(id, FRAME_HEADER_BYTES + 6 * index);
    frame.writeUInt32BE(value, FRAME_HEADER_BYTES + 6 * index + 2);
  }
  return frame;
}

/** Encodes RST_STREAM with an error code, or WINDOW_UPDATE with an increment. */
export function encodeNumber(
  type: typeof FRAME.RST_STREAM | typeof FRAME.WINDOW_UPDATE,
  streamId: number,
  value: number,
): Buffer {
  const frame = allocateFrame(type, 0, streamId, 4);
  frame.writeUInt32BE(value, FRAME_HEADER_BYTES);
  return frame;
}

export function encodeGoAway(lastStreamId: number, code: number): Buffer {
  const frame = allocateFrame(FRAME.GOAWAY, 0, 0, 8);
  frame.writeUInt32BE(lastStreamId, FRAME_HEADER_BYTES);
  frame.writeUInt32BE(code, FRAME_HEADER_BYTES + 4);
  return frame;
}
