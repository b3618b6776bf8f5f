import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod } from "../../../test/support/entries.ts";
import { availableAtMs, isAvailable } from "./availability.ts";

const NOW_MS = 1_000_000;
const input = { nodeReady: () => true, nowMs: NOW_MS };
const readySince = (sinceMs: number, restartCount = 0) => {
  const status = { ready: true, containers: [{ name: "main", restartCount }] };
  return { ...aPod({ status }), readySinceMs: sinceMs };
};

test("a pod is available after it was ready for the minimum time", () => {
  assert.equal(isAvailable(readySince(NOW_MS - 1_000), 1_000, input), true);
  assert.equal(isAvailable(readySince(NOW_MS - 999), 1_000, input), false);
  assert.equal(isAvailable(readySince(NOW_MS), 1_000, input), false);
});

test("a pod that has crashed is available after ten seconds, or after the service's minimum time if that is longer", () => {
  assert.equal(availableAtMs(readySince(NOW_MS, 1), 1_000, input), NOW_MS + 10_000);
  assert.equal(availableAtMs(readySince(NOW_MS, 1), 30_000, input), NOW_MS + 30_000);
});

test("a pod that was ready before the clock was set back stays available", () => {
  const pod = readySince(NOW_MS + 3_600_000);
  assert.equal(isAvailable(pod, 1_000, input), true);
  assert.equal(isAvailable(readySince(NOW_MS + 1, 1), 1_000, input), true);
});
