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
  const batcher = new Batcher<T>();
  for (const write of writes) {
    const full = batcher.add(write);
    if (full !== undefined) yield full;
  }
  const rest = batcher.rest();
  if (rest.length > 0) yield rest;
}

/** Groups writes, in order, into batches that each fit into one transaction. */
export class Batcher<T extends StoreWrite> {
  #batch: T[] = [];
  #room: Room = EMPTY_ROOM;

  /** Adds the write. Returns the batch before it if the write does not fit into that one. */
  add(write: T): T[] | undefined {
    const size = { compares: write.compares.length, ops: write.ops.length, bytes: bytesOf(write) };
    const { compares, ops, bytes } = this.#room;
    const fits = size.compares <= compares && size.ops <= ops && size.bytes <= bytes;
    const full = fits || this.#batch.length === 0 ? undefined : this.#batch;
    if (!fits) this.#batch = [];
    const room = fits ? this.#room : EMPTY_ROOM;
    this.#batch.push(write);
    this.#room = {
      compares: room.compares - size.compares,
      ops: room.ops - size.ops,
      bytes: room.bytes - size.bytes,
    };
    return full;
  }

  /** Returns the last batch, which may be empty. */
  rest(): T[] {
    const rest = this.#batch;
    this.#batch = [];
    this.#room = EMPTY_ROOM;
    return rest;
  }
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
