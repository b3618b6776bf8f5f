import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

const limitMs = 2 ** 31 - 1;

test("a delay that one timer can't hold is waited for in full", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  systemClock().schedule(limitMs + 5_000, () => calls++);
  t.mock.timers.tick(limitMs);
  assert.equal(calls, 0);
  t.mock.timers.tick(4_999);
  assert.equal(calls, 0);
  t.mock.timers.tick(1);
  assert.equal(calls, 1);
});

test("a delay without end never fires", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  systemClock().schedule(Number.POSITIVE_INFINITY, () => calls++);
  for (let times = 0; times < 3; times++) t.mock.timers.tick(limitMs);
  assert.equal(calls, 0);
});

test("a long delay can be cancelled after its first part", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  const cancel = systemClock().schedule(2 * limitMs, () => calls++);
  t.mock.timers.tick(limitMs + 1);
  cancel();
  t.mock.timers.tick(2 * limitMs);
  assert.equal(calls, 0);
});
