import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { createMemoryStore } from "../store/index.ts";
import { batches, type StoreWrite } from "./batches.ts";

test("every batch fits into a transaction, and the writes keep their order", async () => {
  for (let seed = 0; seed < 30; seed++) {
    const random = randomOf(seed);
    const sizes = random.chance(0.5) ? [0, 100, 5_000] : [10, 300_000, 700_000];
    const writes = Array.from({ length: random.below(400) + 1 }, (_, index): StoreWrite => {
      const keys = [`k${index}-a`, `k${index}-b`].slice(0, random.below(2) + 1);
      return {
        compares: keys.map((key) => ({ type: "absent", key })),
        ops: keys.map((key) => ({ type: "put", key, value: new Uint8Array(random.pick(sizes)) })),
      };
    });
    const found = batches(writes);
    assert.deepEqual(found.flat(), writes);
    const store = createMemoryStore({ clock: new VirtualClock() });
    for (const batch of found) {
      assert.ok(batch.length > 0);
      const compares = batch.flatMap((write) => write.compares);
      const more = [1, 2].map((n) => ({ type: "absent", key: `${n}`.repeat(1_024) }) as const);
      const { succeeded } = await store.txn(
        [...compares, ...more],
        batch.flatMap((write) => write.ops),
      );
      assert.ok(succeeded, `seed ${seed}`);
    }
    await store.close();
  }
});

test("small writes share a batch", () => {
  const writes = Array.from({ length: 126 }, (_, index): StoreWrite => {
    return { compares: [{ type: "exists", key: `k${index}` }], ops: [{ type: "delete", key: `k${index}` }] };
  });
  assert.equal(batches(writes).length, 1);
  assert.deepEqual(batches([]), []);
});

test("writes a batch that exceeds every transaction alone, so that the store reports the error", () => {
  const large: StoreWrite = {
    compares: [],
    ops: [{ type: "put", key: "k", value: new Uint8Array(2_000_000) }],
  };
  const small: StoreWrite = { compares: [], ops: [{ type: "delete", key: "s" }] };
  assert.deepEqual(batches([small, large, small]), [[small], [large], [small]]);
});
