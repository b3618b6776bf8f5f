import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { StallDetector } from "./stall-detector.ts";

const INTERVAL_MS = 1_000;

function start() {
  const clock = new VirtualClock();
  const wall = { jumpMs: 0 };
  const held: number[] = [];
  let pulses = 0;
  const detector = new StallDetector({
    clock: { ...clock, nowMs: () => clock.nowMs() + wall.jumpMs },
    intervalMs: INTERVAL_MS,
    onStall: (ms) => held.push(ms),
    onPulse: () => pulses++,
  });
  return { clock, wall, held, detector, pulses: () => pulses };
}

test("reports no pause of a running process, however often it is checked", () => {
  const { clock, held, detector, pulses } = start();
  for (let step = 0; step < 100; step++) {
    clock.advance(130);
    detector.check();
  }
  assert.deepEqual([held, pulses()], [[], 13]);
});

test("reports a pause once, at the first check after it", () => {
  const { clock, held, detector } = start();
  clock.stall(8_000);
  detector.check();
  detector.check();
  assert.deepEqual(held, [7_000]);
  clock.advance(0);
  assert.deepEqual(held, [7_000]);
});

test("reports a pause without another check", () => {
  const { clock, held } = start();
  clock.stall(3_000);
  clock.advance(0);
  assert.deepEqual(held, [2_000]);
});

test("ignores a slightly late timer", () => {
  const { clock, held } = start();
  clock.stall(1_500);
  clock.advance(0);
  assert.deepEqual(held, []);
});

test("detects a suspended machine by the difference of wall clock and monotonic clock", () => {
  const { clock, wall, held } = start();
  wall.jumpMs = 60_000;
  clock.advance(INTERVAL_MS);
  assert.deepEqual(held, [60_000]);
  wall.jumpMs -= 120_000;
  clock.advance(10 * INTERVAL_MS);
  assert.deepEqual(held, [60_000], "set back, it proves nothing");
});

test("stops when it is closed", () => {
  const { clock, detector, pulses } = start();
  detector.stop();
  clock.advance(10 * INTERVAL_MS);
  assert.deepEqual([pulses(), clock.pending], [0, 0]);
});
