import assert from "node:assert/strict";
import { test } from "node:test";
import { heartbeatIntervalMs } from "./heartbeat-interval.ts";

test("increases the interval for larger fleets", () => {
  const intervals = [1, 1_250, 1_251, 2_500, 2_501, 16_000].map((nodes) =>
    heartbeatIntervalMs(nodes, { baseMs: 2_500 }),
  );
  assert.deepEqual(intervals, [2_500, 2_500, 5_000, 5_000, 10_000, 10_000]);
});

test("keeps a longer configured interval, and limits only the increase", () => {
  assert.equal(heartbeatIntervalMs(5_000, { baseMs: 30_000 }), 30_000);
  assert.equal(heartbeatIntervalMs(5_000, { baseMs: 2_500, longestMs: 4_000 }), 4_000);
  assert.equal(heartbeatIntervalMs(5_000, { baseMs: 2_500, longestMs: 2_000 }), 2_500);
});
