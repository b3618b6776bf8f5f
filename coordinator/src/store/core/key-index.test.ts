import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { KeyIndex } from "./key-index.ts";

test("holds the same keys as a sorted array over many splits and emptied chunks", () => {
  const random = randomOf(7);
  const index = new KeyIndex();
  const model = new Set<string>();
  for (let step = 0; step < 30_000; step++) {
    const key = `${random.pick(["a/", "b/", "c/"])}${random.below(4000)}`;
    // The number of keys grows in the first half and shrinks in the second.
    if (random.chance(step < 15_000 ? 0.8 : 0.3)) {
      index.add(key);
      model.add(key);
    } else {
      index.delete(key);
      model.delete(key);
    }
    if (step % 3000 !== 2999) continue;
    const sorted = [...model].sort();
    assert.deepEqual([...index.keys("")], sorted);
    for (const prefix of ["a/", "b/1", "c", "x"]) {
      assert.deepEqual(
        [...index.keys(prefix)],
        sorted.filter((key) => key.startsWith(prefix)),
      );
    }
    const after = random.pick(sorted);
    assert.deepEqual(
      [...index.keys("b/", after)],
      sorted.filter((key) => key.startsWith("b/") && key > after),
    );
  }
  for (const key of model) index.delete(key);
  assert.deepEqual([...index.keys("")], []);
});

test("keeps keys in order that are added in ascending or descending order", () => {
  const keys = Array.from({ length: 3000 }, (_, i) => `k${String(i).padStart(5, "0")}`);
  const [up, down] = [new KeyIndex(), new KeyIndex()];
  for (const key of keys) up.add(key);
  for (const key of keys.toReversed()) down.add(key);
  assert.deepEqual([...up.keys("")], keys);
  assert.deepEqual([...down.keys("")], keys);
  assert.deepEqual([...up.keys("k", "k02997")], ["k02998", "k02999"]);
});
