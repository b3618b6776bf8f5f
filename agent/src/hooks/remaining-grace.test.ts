import assert from "node:assert/strict";
import { test } from "node:test";
import { GRACE_LEAST_MS, remainingGraceMs } from "./remaining-grace.ts";

test("the duration of pre_stop reduces the grace period, except for the last two seconds", () => {
  for (const [graceMs, usedMs, left] of [
    [30_000, 0, 30_000],
    [30_000, 10_000, 20_000],
    [30_000, 28_000, 2_000],
    [30_000, 29_999, 2_000],
    [30_000, 500_000, 2_000],
    [1_000, 0, 2_000],
    [30_000, -60_000, 30_000],
  ] as const) {
    assert.equal(remainingGraceMs(graceMs, 1_000_000, 1_000_000 + usedMs), left, `${graceMs}, ${usedMs}`);
  }
});

test("the remaining time never increases, and hook and stop together never exceed the grace period plus the minimum", () => {
  for (const graceMs of [0, 1, 1_999, 2_000, 2_001, 30_000]) {
    let before = Number.POSITIVE_INFINITY;
    for (let usedMs = 0; usedMs <= 40_000; usedMs += 500) {
      const left = remainingGraceMs(graceMs, 0, usedMs);
      assert.ok(left <= before && left >= GRACE_LEAST_MS);
      assert.ok(Math.min(usedMs, graceMs) + left <= graceMs + GRACE_LEAST_MS);
      before = left;
    }
  }
});
