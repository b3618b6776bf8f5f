const LENGTH_DELIMITED = 2;
const VARINT_BYTES_MAX = 5;

/**
 * Returns the value of a protobuf message that consists of a single field of type bytes, without copying it. Returns
 * undefined for any other message, which needs a general decoder. @param field the field's number, below 16, so that
 * its tag is one byte
 */
export function readBytesField(message: Buffer, field: number): Buffer | undefined {
  if (message[0] !== tagOf(field)) return undefined;
  let length = 0;
  for (let at = 1; at <= VARINT_BYTES_MAX && at < message.length; at++) {
    const byte = message[at] ?? 0;
    length += (byte & 0x7f) * 2 ** (7 * (at - 1));
    if (byte < 0x80) return at + 1 + length === message.length ? message.subarray(at + 1) : undefined;
  }
  return undefined;
}

/** The number of bytes that `writeBytesFieldHeader` needs before the value. */
export const BYTES_FIELD_HEADER_MAX = 1 + VARINT_BYTES_MAX;

/**
 * Writes the tag and length of a bytes field whose value is at offset `BYTES_FIELD_HEADER_MAX` of `buffer`, directly
 * before the value. Returns the encoded field, which shares the buffer's memory. @param field the field's number, below
 * 16
 */
export function writeBytesFieldHeader(buffer: Buffer, field: number, valueBytes: number): Buffer {
  const varint: number[] = [];
  for (let rest = valueBytes; varint.length === 0 || rest > 0; rest = Math.floor(rest / 128))
    varint.push(rest >= 128 ? (rest % 128) | 0x80 : rest);
  const start = BYTES_FIELD_HEADER_MAX - 1 - varint.length;
  buffer.set([tagOf(field), ...varint], start);
  return buffer.subarray(start, BYTES_FIELD_HEADER_MAX + valueBytes);
}

function tagOf(field: number): number {
  return field * 8 + LENGTH_DELIMITED;
}
