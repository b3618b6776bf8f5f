import type { Compare, Op } from "../store/index.ts";
import { TXN_BYTES_MAX, TXN_OPS_MAX } from "../store/limits.ts";

/** Compares and operations that are applied completely or not at all. */
export interface StoreWrite {
  readonly compares: readonly Compare[];
  readonly ops: readonly Op[];
}

/** The number of compares and keys that callers may add to each batch. */
const RESERVED_COMPARES = 2;
const RESERVED_BYTES = 4096;

/** Returns the writes in order, grouped into batches that each fit into one transaction. Pure. */
export function batches<T extends StoreWrite>(writes: Iterable<T>): T[][] {
  return [...eachBatch(writes)];
}

/** Yields the batches one after another, so that lazily created writes are never all in memory. */
export function* eachBatch<T extends StoreWrite>(writes: Iterable<T>): Generator<T[]> {
  let batch: T[] = [];
  let room: Room = EMPTY_ROOM;
  for (const write of writes) {
    const size = { compares: write.compares.length, ops: write.ops.length, bytes: bytesOf(write) };
    const fits = size.compares <= room.compares && size.ops <= room.ops && size.bytes <= room.bytes;
    if (!fits) {
      if (batch.length > 0) yield batch;
      batch = [];
      room = EMPTY_ROOM;
    }
    batch.push(write);
    room = {
      compares: room.compares - size.compares,
      ops: room.ops - size.ops,
      bytes: room.bytes - size.bytes,
    };
  }
  if (batch.length > 0) yield batch;
}

interface Room {
  readonly compares: number;
  readonly ops: number;
  readonly bytes: number;
}

const EMPTY_ROOM: Room = {
  compares: TXN_OPS_MAX - RESERVED_COMPARES,
  ops: TXN_OPS_MAX,
  bytes: TXN_BYTES_MAX - RESERVED_BYTES,
};

/** Returns the size as the store computes it, or slightly more. */
export function bytesOf({ compares, ops }: StoreWrite): number {
  let bytes = 0;
  for (const compare of compares) {
    bytes += Buffer.byteLength(compare.key) + (compare.type === "value" ? compare.value.byteLength : 0);
  }
  for (const op of ops) {
    bytes += Buffer.byteLength(op.type === "delete-prefix" ? op.prefix : op.key);
    if (op.type === "put") bytes += op.value.byteLength;
  }
  return bytes;
}
