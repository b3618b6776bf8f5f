import assert from "node:assert/strict";
import { bytes, put, text } from "../../src/store/conformance/fixture.ts";
import type { Etcd } from "../../src/store/etcd/etcd.ts";
import type { Op, Store } from "../../src/store/index.ts";
import { TXN_BYTES_MAX } from "../../src/store/limits.ts";
import type { crashing } from "./etcd-bench.ts";

/**
 * Changes above the limits of one request, and many small ones whose fold needs several
 * transactions.
 */
export const STEPS: readonly { readonly ops: readonly Op[]; readonly state: string }[] = [
  { ops: [], state: "" },
  { ops: [large("big", "1")], state: "big=1" },
  { ops: many("1", 128), state: "big=1 k*128=1" },
  { ops: [large("big", "2")], state: "big=2 k*128=1" },
  { ops: [put("big", "3")], state: "big=3 k*128=1" },
  { ops: many("2", 128), state: "big=3 k*128=2" },
  { ops: [{ type: "delete-prefix", prefix: "k" }], state: "big=3" },
  { ops: many("4", 60), state: "big=3 k*60=4" },
];

/** Opens a store and executes the steps. Returns the number of acknowledged ones. */
export async function takeSteps(
  etcd: ReturnType<typeof crashing>,
  open: (etcd: Etcd) => Promise<Store>,
  beforeCompacting: (store: Store) => Promise<void> = async () => {},
): Promise<number> {
  let done = 0;
  try {
    const store = await open(etcd);
    try {
      for (const { ops } of STEPS.slice(1)) {
        await store.txn([], ops);
        done++;
        if (done % 3 > 0) continue;
        await beforeCompacting(store);
        await store.compact(store.revision);
      }
    } finally {
      await store.close();
    }
  } catch (error) {
    assert.ok(etcd.crashed, String(error));
  }
  return done;
}

/** Describes the state by the names of the steps. */
export async function stateOf(store: Store): Promise<string> {
  const { records } = await store.range("");
  const ofKey = (key: string) => records.filter((record) => record.key.startsWith(key));
  const first = (key: string) => text(ofKey(key)[0]?.value.subarray(0, 1));
  const big = ofKey("big").length > 0 ? [`big=${first("big")}`] : [];
  const many = ofKey("k").length > 0 ? [`k*${ofKey("k").length}=${first("k")}`] : [];
  return [...big, ...many].join(" ");
}

function large(key: string, fill: string): Op {
  return { type: "put", key, value: bytes(fill.repeat(TXN_BYTES_MAX - key.length)) };
}

function many(value: string, count: number): Op[] {
  return Array.from({ length: count }, (_, i) => put(`k${i}`, value));
}
