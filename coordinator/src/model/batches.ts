import type { Compare, Op } from "../store/index.ts";
import { TXN_BYTES_MAX, TXN_OPS_MAX } from "../store/limits.ts";

/** What is written together or not at all. */
export interface Piece {
  readonly compares: readonly Compare[];
  readonly ops: readonly Op[];
}

/** What callers add to each batch themselves: a compare or two, and the keys that these hold. */
const reservedCompares = 2;
const reservedBytes = 4096;

/** Pure: the pieces in their order, as many in a batch as the store takes in one transaction. */
export function batches<T extends Piece>(pieces: readonly T[]): T[][] {
  const found: T[][] = [];
  let room = { compares: 0, ops: 0, bytes: 0 };
  for (const piece of pieces) {
    const size = { compares: piece.compares.length, ops: piece.ops.length, bytes: bytesOf(piece) };
    const fits = size.compares <= room.compares && size.ops <= room.ops && size.bytes <= room.bytes;
    if (!fits) {
      found.push([]);
      room = {
        compares: TXN_OPS_MAX - reservedCompares,
        ops: TXN_OPS_MAX,
        bytes: TXN_BYTES_MAX - reservedBytes,
      };
    }
    found.at(-1)?.push(piece);
    room.compares -= size.compares;
    room.ops -= size.ops;
    room.bytes -= size.bytes;
  }
  return found;
}

/** As the store counts, or a little more. */
export function bytesOf({ compares, ops }: Piece): number {
  let bytes = 0;
  for (const compare of compares) {
    bytes += Buffer.byteLength(compare.key) + (compare.kind === "value" ? compare.value.byteLength : 0);
  }
  for (const op of ops) {
    bytes += Buffer.byteLength(op.kind === "deletePrefix" ? op.prefix : op.key);
    if (op.kind === "put") bytes += op.value.byteLength;
  }
  return bytes;
}
