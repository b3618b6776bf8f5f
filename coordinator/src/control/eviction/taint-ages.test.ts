import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { TaintAges } from "./taint-ages.ts";

const noLimit = { key: "a", atMostMs: Number.POSITIVE_INFINITY };

function start() {
  const time = { wallMs: 1_000_000, monotonicMs: 0 };
  const ages = new TaintAges({ nowMs: () => time.wallMs, monotonicMs: () => time.monotonicMs });
  const taint = NodeTaint.fromPartial({ key: "a", effect: "NoExecute", addedAt: toTimestamp(990_000) });
  const ageMs = (limit = noLimit): number => {
    const [aged] = ages.aged("n1", [taint], limit);
    return time.wallMs - (toEpochMs(aged?.addedAt) ?? Number.NaN);
  };
  return { time, ages, taint, ageMs };
}

test("a taint's age is read from its record once, and then follows the monotonic clock", () => {
  const { time, ageMs } = start();
  assert.equal(ageMs(), 10_000);
  time.wallMs += 3_600_000;
  time.monotonicMs += 1_000;
  assert.equal(ageMs(), 11_000);
  time.wallMs -= 7_200_000;
  assert.equal(ageMs(), 11_000);
});

test("a taint with a time in the future has the age 0", () => {
  const { time, ageMs } = start();
  time.wallMs = 900_000;
  assert.equal(ageMs(), 0);
  time.monotonicMs += 500;
  assert.equal(ageMs(), 500);
});

test("limits the age of taints with the given key", () => {
  const { ageMs } = start();
  assert.equal(ageMs({ key: "a", atMostMs: 3_000 }), 3_000);
  assert.equal(ageMs({ key: "b", atMostMs: 3_000 }), 10_000);
});

test("the age of a taint that was removed and added again starts over", () => {
  const { time, ages, ageMs } = start();
  ageMs();
  ages.aged("n1", [], noLimit);
  time.wallMs = 990_000;
  assert.equal(ageMs(), 0);
});
