import type { EtcdOp, EtcdRecord } from "./etcd.ts";

/**
 * etcd takes requests of 1.5 MiB (--max-request-bytes), keys and the framing of 128 operations included. A record or log entry
 * above this is written in parts.
 */
export const PART_BYTES_MAX = 1024 * 1024;

/** etcd takes 128 operations for one transaction (--max-txn-ops). The rest is for what every transaction adds. */
export const GROUP_OPS_MAX = 120;

/** The last acknowledged revision. Only the transaction that moves it makes the log entries up to it count. */
export const HEAD_KEY = "m/head";

/** The coordinator that may write. It exists as long as that one keeps its lease alive. */
export const LEADER_KEY = "m/leader";

/** The base that a fold of several transactions leads to, while it runs. */
export const FOLD_KEY = "m/fold";

/** Says where the store was moved to, once it was. Such a store isn't opened. */
export const MOVED_KEY = "m/moved";

/** Present while a restore writes the store. Such a store isn't opened. */
export const RESTORING_KEY = "m/restoring";

/** Every key of the store. */
export const ALL_KEYS = { from: "\u0001", to: "\u{10ffff}" } as const;

/** One put, or one for each part: the later parts have the key with a zero byte and their number, so they follow it in order. */
export function putsOf(key: string, value: Buffer): EtcdOp[] {
  const ops: EtcdOp[] = [];
  for (let start = 0; start < value.length || start === 0; start += PART_BYTES_MAX) {
    ops.push({
      kind: "put",
      key: partKey(key, start / PART_BYTES_MAX),
      value: value.subarray(start, start + PART_BYTES_MAX),
    });
  }
  return ops;
}

/** Deletes a key with all its parts. */
export function deletionOf(key: string): EtcdOp {
  return { kind: "delete", from: key, to: `${key}\u0001` };
}

/** Deletes the parts that an earlier, larger value had: those from this number on. */
export function deletionOfParts(key: string, from: number): EtcdOp {
  return { kind: "delete", from: partKey(key, from), to: `${key}\u0001` };
}

/** Puts the parts of each value together again. The records come in order of their keys. */
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
    const size = op.kind === "put" ? op.value.byteLength : 0;
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
