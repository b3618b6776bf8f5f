import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "./random.ts";

const DRAWS = 10_000;

test("draws the numbers of mulberry32", () => {
  const random = randomOf(1);
  const numbers = Array.from({ length: 3 }, () => random.next() * 2 ** 32);
  assert.deepEqual(numbers, [2_693_262_067, 11_749_833, 2_265_367_787]);
});

test("draws the same numbers for the same seed, and others for another seed", () => {
  const draws = (seed: number): number[] => {
    const random = randomOf(seed);
    return Array.from({ length: 20 }, () => random.below(1_000));
  };
  assert.deepEqual(draws(7), draws(7));
  assert.notDeepEqual(draws(7), draws(8));
});

test("draws each whole number below the limit about equally often", () => {
  const random = randomOf(3);
  const counts = new Array<number>(10).fill(0);
  for (let draw = 0; draw < DRAWS; draw++) {
    const at = random.below(10);
    counts[at] = (counts[at] ?? 0) + 1;
  }
  assert.equal(counts.length, 10);
  for (const count of counts) assert.ok(count > 900 && count < 1_100, counts.join());
});

test("chance returns true with the given probability", () => {
  const random = randomOf(4);
  const hits = Array.from({ length: DRAWS }, () => random.chance(0.2)).filter(Boolean).length;
  assert.ok(hits > 1_800 && hits < 2_200, `${hits}`);
  assert.equal(random.chance(0), false);
  assert.equal(random.chance(1), true);
});

test("shuffles the items into another order, and leaves the argument unchanged", () => {
  const items = Array.from({ length: 50 }, (_, index) => index);
  const shuffled = randomOf(5).shuffled(items);
  assert.notDeepEqual(shuffled, items);
  assert.deepEqual(
    shuffled.toSorted((a, b) => a - b),
    items,
  );
});

test("picks an item, which may be undefined, and throws without items", () => {
  const random = randomOf(6);
  assert.equal(random.pick(["only"]), "only");
  assert.equal(random.pick([undefined]), undefined);
  assert.throws(() => random.pick([]), { name: "RangeError", message: "there is nothing to pick from" });
});
