import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

const LIMIT_MS = 2 ** 31 - 1;

test("waits in full for a delay that exceeds the limit of one timer", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  systemClock.schedule(LIMIT_MS + 5_000, () => calls++);
  t.mock.timers.tick(LIMIT_MS);
  assert.equal(calls, 0);
  t.mock.timers.tick(4_999);
  assert.equal(calls, 0);
  t.mock.timers.tick(1);
  assert.equal(calls, 1);
});

test("never fires after an infinite delay", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  systemClock.schedule(Number.POSITIVE_INFINITY, () => calls++);
  for (let times = 0; times < 3; times++) t.mock.timers.tick(LIMIT_MS);
  assert.equal(calls, 0);
});

test("cancels a long delay after its first part", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  const cancel = systemClock.schedule(2 * LIMIT_MS, () => calls++);
  t.mock.timers.tick(LIMIT_MS + 1);
  cancel();
  t.mock.timers.tick(2 * LIMIT_MS);
  assert.equal(calls, 0);
});
