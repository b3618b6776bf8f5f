import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { MAX_WATCHERS, WATCHERS_AT_ONCE, WATCHERS_PAUSE_MS } from "./limits.ts";
import { Watchers } from "./watchers.ts";

function start(count: number) {
  const clock = new VirtualClock();
  const watchers = new Watchers(clock);
  const calls: number[] = [];
  const stops = Array.from({ length: count }, (_, index) => watchers.add(() => calls.push(index)));
  return { clock, watchers, calls, stops };
}

test("calls a few watchers at once", () => {
  const { watchers, calls } = start(WATCHERS_AT_ONCE);
  watchers.wake();
  watchers.wake();
  assert.equal(calls.length, 2 * WATCHERS_AT_ONCE);
});

test("calls many watchers in groups, each once for all writes before its group", () => {
  const { clock, watchers, calls, stops } = start(2 * WATCHERS_AT_ONCE + 1);
  watchers.wake();
  stops.at(-1)?.();
  for (let writes = 0; writes < 3; writes++) watchers.wake();
  assert.equal(calls.length, WATCHERS_AT_ONCE);
  clock.advance(WATCHERS_PAUSE_MS);
  assert.deepEqual(
    calls,
    Array.from({ length: 2 * WATCHERS_AT_ONCE }, (_, index) => index),
    "in order, without the one that has left",
  );
  clock.advance(WATCHERS_PAUSE_MS);
  assert.deepEqual(calls.slice(2 * WATCHERS_AT_ONCE), calls.slice(0, WATCHERS_AT_ONCE), "for later writes");
  clock.advance(10 * WATCHERS_PAUSE_MS);
  assert.equal(calls.length, 3 * WATCHERS_AT_ONCE, "nothing was written since");
});

test("calls no watcher after the end", () => {
  const { clock, watchers, calls } = start(WATCHERS_AT_ONCE + 1);
  watchers.wake();
  watchers.close();
  watchers.wake();
  clock.advance(10 * WATCHERS_PAUSE_MS);
  assert.equal(calls.length, WATCHERS_AT_ONCE);
});

test("limits the number of watchers", () => {
  const { watchers, stops } = start(MAX_WATCHERS);
  assert.throws(() => watchers.add(() => {}), { code: "RESOURCE_EXHAUSTED" });
  stops[0]?.();
  watchers.add(() => {});
});
