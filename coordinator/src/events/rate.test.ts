import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDED_BETWEEN_SEARCHES, BURST_PER_OBJECT, MAX_RATED, REFILL_MS } from "./limits.ts";
import { ObjectRates } from "./rate.ts";

test("allows a burst and then one event per interval, for each object separately", () => {
  const rates = new ObjectRates<string>();
  assert.equal(taken(rates, "a", 40, 0), BURST_PER_OBJECT);
  assert.equal(taken(rates, "b", 1, 0), 1);
  assert.equal(taken(rates, "a", 5, REFILL_MS - 1), 0);
  assert.equal(taken(rates, "a", 5, REFILL_MS), 1);
  assert.equal(taken(rates, "a", 5, 4 * REFILL_MS), 3);
  assert.equal(taken(rates, "a", 100, 1_000 * REFILL_MS), BURST_PER_OBJECT, "full again");
});

test("reports dropped events once, when the object may record events again", () => {
  const rates = new ObjectRates<string>();
  taken(rates, "a", BURST_PER_OBJECT + 7, 0);
  assert.equal(rates.waiting, true);
  assert.deepEqual([...rates.recovered(REFILL_MS - 1)], []);
  assert.deepEqual([...rates.recovered(REFILL_MS)], [{ object: "a", dropped: 7 }]);
  assert.deepEqual([...rates.recovered(2 * REFILL_MS)], []);
  assert.equal(rates.waiting, false);
});

test("tracks a limited number of objects", () => {
  const rates = new ObjectRates<number>();
  for (let object = 0; object < 2 * MAX_RATED; object++) rates.tryAcquire(object, 0);
  assert.ok(rates.size >= MAX_RATED && rates.size <= MAX_RATED + ADDED_BETWEEN_SEARCHES, `${rates.size}`);
  for (let object = 1; object <= ADDED_BETWEEN_SEARCHES; object++)
    rates.tryAcquire(-object, 1_000 * REFILL_MS);
  assert.ok(rates.size <= ADDED_BETWEEN_SEARCHES, "those that are full need no remembering");
});

function taken(rates: ObjectRates<string>, object: string, times: number, nowMs: number): number {
  return Array.from({ length: times }, () => rates.tryAcquire(object, nowMs)).filter(Boolean).length;
}
