import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalLimit } from "./refusal-limit.ts";

const REFUSED = { event: "refused" };

test("records ten refusals of one caller a minute, and counts the others", () => {
  const limit = new RefusalLimit();
  const entries = Array.from({ length: 25 }, (_, i) => limit.note("a", REFUSED, i)).flat();
  assert.equal(entries.length, 10);
  assert.deepEqual(limit.note("b", REFUSED, 30), [REFUSED], "another caller is not affected");
  assert.deepEqual(limit.note("b", REFUSED, 59_999), [REFUSED]);
  assert.deepEqual(limit.note("b", REFUSED, 60_000), [
    { event: "refusals-left-out", peer: "a", count: 15 },
    REFUSED,
  ]);
  assert.deepEqual(limit.note("a", REFUSED, 60_001), [REFUSED], "a new minute has begun");
});

test("counts callers beyond a thousand together", () => {
  const limit = new RefusalLimit();
  const entries = Array.from({ length: 5_000 }, (_, i) => limit.note(`caller-${i}`, REFUSED, 0)).flat();
  assert.equal(entries.length, 1_010);
});
