import assert from "node:assert/strict";
import { test } from "node:test";
import { toTimestamp } from "./timestamp.ts";

test("splits milliseconds into seconds and nanoseconds", () => {
  assert.deepEqual(toTimestamp(1_500), { seconds: 1n, nanos: 500_000_000 });
  assert.deepEqual(toTimestamp(999.9999999), { seconds: 0n, nanos: 999_999_999 });
});

test("gives a valid time for every number", () => {
  assert.deepEqual(toTimestamp(Number.NaN), { seconds: 0n, nanos: 0 });
  assert.equal(toTimestamp(Number.POSITIVE_INFINITY).seconds, 253_402_300_799n);
  assert.equal(toTimestamp(Number.NEGATIVE_INFINITY).seconds, -62_135_596_800n);
});
