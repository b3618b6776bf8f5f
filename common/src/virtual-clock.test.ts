import assert from "node:assert/strict";
import { test } from "node:test";
import { pause } from "./clock.ts";
import { VirtualClock } from "./virtual-clock.ts";

test("fires timers by due time, and timers with the same due time in order of creation", () => {
  const clock = new VirtualClock({ startMs: 0 });
  const fired: string[] = [];
  clock.schedule(20, () => fired.push(`c at ${clock.monotonicMs()}`));
  clock.schedule(10, () => fired.push(`a at ${clock.monotonicMs()}`));
  clock.schedule(10, () => clock.schedule(5, () => fired.push(`b at ${clock.monotonicMs()}`)));
  clock.advance(19);
  assert.deepEqual(fired, ["a at 10", "b at 15"]);
  clock.advance(1);
  assert.deepEqual(fired, ["a at 10", "b at 15", "c at 20"]);
  assert.equal(clock.pending, 0);
});

test("does not fire a cancelled timer, however many were cancelled", () => {
  const clock = new VirtualClock();
  const fired: number[] = [];
  const cancels = Array.from({ length: 1_000 }, (_, at) => clock.schedule(1_000 - at, () => fired.push(at)));
  for (const [at, cancel] of cancels.entries()) if (at % 100 !== 0) cancel();
  cancels[1]?.();
  assert.equal(clock.pending, 10);
  clock.advance(1_000);
  assert.deepEqual(fired, [900, 800, 700, 600, 500, 400, 300, 200, 100, 0]);
});

test("a timer can cancel another one with the same due time", () => {
  for (const advance of [(it: VirtualClock) => it.advance(5), (it: VirtualClock) => void it.next(1e9)]) {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.schedule(5, () => {
      fired.push("first");
      cancel();
    });
    const cancel = clock.schedule(5, () => fired.push("second"));
    advance(clock);
    assert.deepEqual(fired, ["first"]);
  }
});

test("next fires the timers of one due time, but not those that they create", () => {
  const clock = new VirtualClock({ startMs: 0 });
  const fired: string[] = [];
  clock.schedule(5, () => {
    fired.push("first");
    clock.schedule(0, () => fired.push("third"));
  });
  clock.schedule(5, () => fired.push("second"));
  assert.equal(clock.next(4), false);
  assert.equal(clock.next(5), true);
  assert.deepEqual(fired, ["first", "second"]);
  assert.equal(clock.next(5), true);
  assert.deepEqual(fired, ["first", "second", "third"]);
  assert.equal(clock.next(Number.MAX_SAFE_INTEGER), false);
});

test("a jump of the wall clock affects neither timers nor the monotonic clock", () => {
  const clock = new VirtualClock({ startMs: 0, wallMs: 500_000 });
  let fired = 0;
  clock.schedule(1_000, () => fired++);
  clock.jumpWall(-86_400_000);
  clock.advance(999);
  assert.equal(fired, 0);
  clock.advance(1);
  assert.deepEqual([fired, clock.monotonicMs(), clock.nowMs()], [1, 1_000, 501_000 - 86_400_000]);
});

test("timers that become due during a stall fire at the next advance", () => {
  const clock = new VirtualClock({ startMs: 0 });
  const fired: number[] = [];
  clock.schedule(10, () => fired.push(clock.monotonicMs()));
  clock.stall(50);
  assert.deepEqual(fired, []);
  clock.advance(1);
  assert.deepEqual([fired, clock.monotonicMs()], [[50], 51]);
});

test("run settles promises between timers, and runUntil stops when the condition holds", async () => {
  const clock = new VirtualClock({ startMs: 0 });
  const { signal } = new AbortController();
  let rounds = 0;
  void (async () => {
    for (;;) {
      await pause(clock, 10, signal);
      rounds++;
    }
  })();
  await clock.run(35);
  assert.deepEqual([rounds, clock.monotonicMs()], [3, 35]);
  await clock.runUntil(1_000, () => rounds === 5);
  assert.deepEqual([rounds, clock.monotonicMs()], [5, 50]);
});

test("a pause ends at once when its signal aborts, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const paused = pause(clock, Number.POSITIVE_INFINITY, stop.signal);
  stop.abort();
  await paused;
  assert.equal(clock.pending, 0);
});
