import assert from "node:assert/strict";
import { test } from "node:test";
import { KeptPodRecord } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import { planKeptPods } from "./plan.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = 1_000 * HOUR_MS;
const startedAt = toTimestamp(NOW_MS);

function plan(endMs: number, attemptStartedAt: typeof startedAt | undefined = startedAt) {
  const record = KeptPodRecord.fromPartial({
    attemptStartedAt: startedAt,
    pod: { keptUntil: toTimestamp(endMs) },
  });
  const { remove, nextMs } = planKeptPods({
    kept: [{ key: "kept", revision: 1, record }],
    attemptStartedAt,
    nowMs: NOW_MS,
  });
  return [remove.length, nextMs];
}

test("keeps a pod until its time is over or the next rollout attempt starts", () => {
  assert.deepEqual(plan(NOW_MS + HOUR_MS), [0, NOW_MS + HOUR_MS]);
  assert.deepEqual(plan(NOW_MS), [1, undefined]);
  assert.deepEqual(plan(NOW_MS + HOUR_MS, toTimestamp(NOW_MS + 1)), [1, undefined]);
});

test("removes a pod whose end is far in the future because the clock was set back", () => {
  assert.deepEqual(plan(NOW_MS + 2 * HOUR_MS), [0, NOW_MS + 2 * HOUR_MS]);
  assert.deepEqual(plan(NOW_MS + 24 * HOUR_MS), [1, undefined]);
});
