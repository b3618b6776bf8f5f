import type { EtcdOp, EtcdRecord } from "./etcd.ts";

/**
 * The size above which a record or log entry is written in parts. etcd limits requests to 1.5 MiB (--max-request-bytes),
 * including keys and the encoding of 128 operations.
 */
export const PART_BYTES_MAX = 1024 * 1024;

/**
 * The limit of operations in a group. etcd limits transactions to 128 operations (--max-txn-ops); the rest is for
 * operations that every transaction adds.
 */
export const GROUP_OPS_MAX = 120;

/**
 * The key of the last acknowledged revision. Log entries count only after a transaction has moved the head to their
 * revision.
 */
export const HEAD_KEY = "m/head";

/** The key of the coordinator that may write. It is attached to the coordinator's lease. */
export const LEADER_KEY = "m/leader";

/** The key of the target base of a fold with several transactions, while the fold runs. */
export const FOLD_KEY = "m/fold";

/** The key that holds the place to which the store was moved. A moved store can't be opened. */
export const MOVED_KEY = "m/moved";

/** The key that exists while a restore writes the store. Such a store can't be opened. */
export const RESTORING_KEY = "m/restoring";

/** The range of all keys of the store. */
export const ALL_KEYS = { from: "\u0001", to: "\u{10ffff}" } as const;

/**
 * Returns a put for the value, or one for each part. The keys of later parts are the key followed by a zero byte and a
 * number, so that they sort directly after it.
 */
export function putsOf(key: string, value: Buffer): EtcdOp[] {
  const ops: EtcdOp[] = [];
  for (let start = 0; start < value.length || start === 0; start += PART_BYTES_MAX) {
    ops.push({
      type: "put",
      key: partKey(key, start / PART_BYTES_MAX),
      value: value.subarray(start, start + PART_BYTES_MAX),
    });
  }
  return ops;
}

/** Returns the operation that deletes a key with all its parts. */
export function deletionOf(key: string): EtcdOp {
  return { type: "delete", from: key, to: `${key}\u0001` };
}

/** Returns the operation that deletes the parts from this number on, which an earlier, larger value has left. */
export function deletionOfParts(key: string, from: number): EtcdOp {
  return { type: "delete", from: partKey(key, from), to: `${key}\u0001` };
}

/** Joins the parts of each value. The records must be sorted by key. */
export function* joined(records: Iterable<EtcdRecord>): Generator<readonly [key: string, value: Buffer]> {
  let key: string | undefined;
  let parts: Buffer[] = [];
  for (const record of records) {
    const name = record.key.split("\0", 1)[0] ?? "";
    if (name !== key) {
      if (key !== undefined) yield [key, together(parts)];
      key = name;
      parts = [];
    }
    parts.push(record.value);
  }
  if (key !== undefined) yield [key, together(parts)];
}

/** Splits operations, in order, into groups that each fit into one transaction. */
export function* grouped(ops: Iterable<EtcdOp>): Generator<EtcdOp[]> {
  let group: EtcdOp[] = [];
  let bytes = 0;
  for (const op of ops) {
    const size = op.type === "put" ? op.value.byteLength : 0;
    if (group.length === GROUP_OPS_MAX || (group.length > 0 && bytes + size > PART_BYTES_MAX)) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(op);
    bytes += size;
  }
  if (group.length > 0) yield group;
}

function partKey(key: string, part: number): string {
  return part === 0 ? key : `${key}\0${String(part).padStart(3, "0")}`;
}

function together(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
}
