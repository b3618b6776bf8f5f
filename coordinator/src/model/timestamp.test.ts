import assert from "node:assert/strict";
import { test } from "node:test";
import { toEpochMs, toTimestamp } from "./timestamp.ts";

test("converts times to timestamps and back", () => {
  for (const epochMs of [0, 1, 999, 1_000, 1_795_000_000_123, -1, -1_500]) {
    const timestamp = toTimestamp(epochMs);
    assert.ok(timestamp.nanos >= 0 && timestamp.nanos < 1e9);
    assert.equal(toEpochMs(timestamp), epochMs);
  }
  assert.deepEqual(toTimestamp(-1), { seconds: -1n, nanos: 999_000_000 });
  assert.equal(toEpochMs(undefined), undefined);
});

test("fractions of a millisecond never result in 1,000,000,000 nanoseconds", () => {
  for (const epochMs of [999.9999999, 1999.99999999]) {
    const { nanos } = toTimestamp(epochMs);
    assert.ok(nanos >= 0 && nanos <= 999_999_999, `${nanos}`);
  }
});
