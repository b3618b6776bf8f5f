import assert from "node:assert/strict";
import { test } from "node:test";
import { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import { hasChanged } from "./sample-change.ts";

const MEBIBYTE = 1024 * 1024;
const aSample = (milli: number | undefined, mebibytes = 100) =>
  PodMetricsSample.fromPartial({
    cpuNanoCores: milli === undefined ? undefined : BigInt(milli * 1_000_000),
    memoryBytes: BigInt(mebibytes * MEBIBYTE),
  });

const cases: readonly (readonly [
  what: string,
  before: PodMetricsSample,
  now: PodMetricsSample,
  changed: boolean,
])[] = [
  ["the same values", aSample(500), aSample(500), false],
  ["CPU by less than a millicore", aSample(0), aSample(0.9), false],
  ["CPU of an idle pod by a millicore", aSample(0), aSample(1), true],
  ["CPU by less than 2 %", aSample(500), aSample(509), false],
  ["CPU by 2 %", aSample(500), aSample(490), true],
  ["memory by less than 2 %", aSample(5), aSample(5, 101), false],
  ["memory by 2 %", aSample(5), aSample(5, 102), true],
  ["CPU that becomes known", aSample(undefined), aSample(0), true],
  ["CPU that is no longer known", aSample(0), aSample(undefined), true],
];

for (const [what, before, now, changed] of cases)
  test(`${what} ${changed ? "is" : "is not"} sent`, () => {
    assert.equal(hasChanged(before, now), changed);
  });
