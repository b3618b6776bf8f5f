import { type Field, STATIC_TABLE } from "./static-table.ts";

const INDEXED = 0x80;
/**
 * The prefix of a field that is not added to the peer's dynamic table, so that a block can be sent
 * on any connection. Four bits of an index follow.
 */
const WITHOUT_INDEXING = 0x00;

/**
 * Encodes a header block that can be sent on any connection: it uses only the static table and
 * plain strings.
 */
export function encodeFields(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.map(encodeField));
}

function encodeField([name, value]: Field): Buffer {
  const whole = STATIC_TABLE.findIndex((known) => known[0] === name && known[1] === value) + 1;
  if (whole > 0) return integer(whole, 7, INDEXED);
  const index = STATIC_TABLE.findIndex((known) => known[0] === name) + 1;
  const start = integer(index, 4, WITHOUT_INDEXING);
  return Buffer.concat(index > 0 ? [start, string(value)] : [start, string(name), string(value)]);
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([integer(bytes.length, 7, 0), bytes]);
}

function integer(value: number, prefixBits: number, pattern: number): Buffer {
  const most = 2 ** prefixBits - 1;
  if (value < most) return Buffer.from([pattern | value]);
  const bytes = [pattern | most];
  let rest = value - most;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
