import assert from "node:assert/strict";
import { test } from "node:test";
import { EarliestTimer } from "./earliest-timer.ts";
import { VirtualClock } from "./virtual-clock.ts";

function start() {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  const fired: number[] = [];
  const timer = new EarliestTimer(clock, () => fired.push(clock.monotonicMs() - startMs));
  return { clock, timer, fired, fireIn: (delayMs: number) => timer.fireBy(clock.monotonicMs() + delayMs) };
}

test("a timer for many deadlines fires once, at the earliest of them", () => {
  const { clock, fired, fireIn } = start();
  for (const delayMs of [300, 100, 200, Number.POSITIVE_INFINITY]) fireIn(delayMs);
  clock.advance(1_000);
  assert.deepEqual(fired, [100]);
});

test("a timer for many deadlines can be used again after it has fired, also for a time in the past", () => {
  const { clock, fired, fireIn } = start();
  fireIn(100);
  clock.advance(100);
  fireIn(50);
  clock.advance(50);
  fireIn(-10);
  clock.advance(0);
  assert.deepEqual(fired, [100, 150, 150]);
});

test("a timer for many deadlines that was stopped fires only for later requests", () => {
  const { clock, timer, fired, fireIn } = start();
  fireIn(100);
  timer.stop();
  clock.advance(200);
  assert.deepEqual(fired, []);
  fireIn(500);
  clock.advance(500);
  assert.deepEqual(fired, [700]);
});
