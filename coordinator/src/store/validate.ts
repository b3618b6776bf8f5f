import { KEY_BYTES_MAX, LEASE_TTL_MAX_MS, LEASE_TTL_MIN_MS, TXN_BYTES_MAX, TXN_OPS_MAX } from "./limits.ts";
import type { Compare, Op } from "./store.ts";
import { StoreError } from "./store-error.ts";

export function checkTxn(compares: readonly Compare[], ops: readonly Op[]): void {
  if (compares.length > TXN_OPS_MAX || ops.length > TXN_OPS_MAX) {
    throw new StoreError(
      "TOO_LARGE",
      `a transaction has at most ${TXN_OPS_MAX} compares and ${TXN_OPS_MAX} ops, not ${compares.length} and ${ops.length}`,
    );
  }
  let bytes = 0;
  for (const compare of compares) {
    checkKey(compare.key);
    bytes += compare.key.length + (compare.type === "value" ? compare.value.byteLength : 0);
  }
  for (const op of ops) {
    if (op.type === "delete-prefix") checkPrefix(op.prefix);
    else checkKey(op.key);
    bytes += opBytes(op);
  }
  if (bytes > TXN_BYTES_MAX) {
    throw new StoreError("TOO_LARGE", `a transaction has at most ${TXN_BYTES_MAX} bytes, not ${bytes}`);
  }
  checkOverlap(ops);
}

export function checkKey(key: string): void {
  if (key === "") throw new StoreError("INVALID_ARGUMENT", "a key must not be empty");
  checkPrefix(key);
}

export function checkPrefix(prefix: string): void {
  if (prefix.length > KEY_BYTES_MAX || Buffer.byteLength(prefix) > KEY_BYTES_MAX) {
    throw new StoreError("TOO_LARGE", `a key has at most ${KEY_BYTES_MAX} bytes`);
  }
  if (UNPRINTABLE.test(prefix) || !prefix.isWellFormed()) {
    throw new StoreError("INVALID_ARGUMENT", `a key contains a control character: ${JSON.stringify(prefix)}`);
  }
}

export function checkRevision(revision: number): void {
  if (!Number.isSafeInteger(revision) || revision < 0) {
    throw new StoreError("INVALID_ARGUMENT", `a revision must be a whole number from 0 on, not ${revision}`);
  }
}

export function checkTtl(ttlMs: number): void {
  if (!(ttlMs >= LEASE_TTL_MIN_MS && ttlMs <= LEASE_TTL_MAX_MS)) {
    throw new StoreError(
      "INVALID_ARGUMENT",
      `the time to live of a lease must be ${LEASE_TTL_MIN_MS} to ${LEASE_TTL_MAX_MS} ms, not ${ttlMs}`,
    );
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the purpose
const UNPRINTABLE = /[\u0000-\u001f\u007f]/;

function opBytes(op: Op): number {
  if (op.type === "delete-prefix") return op.prefix.length;
  return op.key.length + (op.type === "put" ? op.value.byteLength : 0);
}

/** Rejects two operations on one key unless both delete. As in etcd, the result would be undefined. */
function checkOverlap(ops: readonly Op[]): void {
  const puts = new Set<string>();
  for (const op of ops) {
    if (op.type !== "put") continue;
    if (puts.has(op.key)) throw overlap(op.key);
    puts.add(op.key);
  }
  if (puts.size === 0) return;
  for (const op of ops) {
    if (op.type === "delete" && puts.has(op.key)) throw overlap(op.key);
    if (op.type !== "delete-prefix") continue;
    for (const key of puts) if (key.startsWith(op.prefix)) throw overlap(key);
  }
}

function overlap(key: string): StoreError {
  return new StoreError(
    "INVALID_ARGUMENT",
    `two ops of one transaction change the key ${JSON.stringify(key)}`,
  );
}
