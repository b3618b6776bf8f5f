import assert from "node:assert/strict";
import { test } from "node:test";
import { heartbeatIntervalMs, nextHeartbeatMs } from "./heartbeat-interval.ts";

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

test("moves heartbeats that arrive at any time to the same times, at most half a second later", () => {
  for (const intervalMs of [5_000, 10_000])
    for (let atMs = 1_000; atMs < 2_000; atMs += 7) {
      const nextMs = nextHeartbeatMs(atMs, intervalMs);
      assert.ok(nextMs >= intervalMs && nextMs <= intervalMs + 500, `${nextMs} after ${atMs}`);
      const lateMs = (atMs + nextMs) % 500;
      assert.ok(lateMs <= 20, `${lateMs} ms after the common time`);
    }
});

test("leaves a heartbeat that arrives shortly after a common time where it is", () => {
  assert.equal(nextHeartbeatMs(10_000, 5_000), 5_000);
  assert.equal(nextHeartbeatMs(10_015.5, 5_000), 5_000);
  assert.equal(nextHeartbeatMs(10_030, 5_000), 5_470);
  assert.equal(nextHeartbeatMs(9_998, 5_000), 5_002);
});

test("moves no heartbeats of a small fleet", () => {
  assert.equal(nextHeartbeatMs(10_030, 2_500), 0);
});
