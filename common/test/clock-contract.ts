import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Clock } from "../src/clock.ts";

export interface ClockUnderTest {
  readonly clock: Clock;
  /** Lets time pass and fires the timers that become due. */
  readonly advance: (ms: number) => void;
}

/** A delay longer than a single timer of Node supports. */
const LONG_MS = 2 ** 31 + 5_000;

/** Tests the contract of Clock. `open` creates a separate clock for each test. */
export function testClock(name: string, open: (t: TestContext) => ClockUnderTest): void {
  const check = (what: string, run: (it: ClockUnderTest) => void) =>
    test(`${name}: ${what}`, (t) => run(open(t)));

  check("calls once, after the delay and not before", ({ clock, advance }) => {
    let calls = 0;
    clock.schedule(50, () => calls++);
    assert.equal(calls, 0);
    advance(49);
    assert.equal(calls, 0);
    advance(1);
    assert.equal(calls, 1);
    advance(1_000);
    assert.equal(calls, 1);
  });

  check("calls by due time, and for the same due time in order of creation", (it) => {
    const fired: string[] = [];
    it.clock.schedule(30, () => fired.push("late"));
    it.clock.schedule(20, () => fired.push("first"));
    it.clock.schedule(20, () => fired.push("second"));
    it.advance(19);
    assert.deepEqual(fired, []);
    it.advance(1);
    assert.deepEqual(fired, ["first", "second"]);
    it.advance(10);
    assert.deepEqual(fired, ["first", "second", "late"]);
  });

  check("a cancelled call never runs, and a late cancellation has no effect", ({ clock, advance }) => {
    const fired: string[] = [];
    const cancel = clock.schedule(10, () => fired.push("cancelled"));
    const tooLate = clock.schedule(10, () => fired.push("called"));
    cancel();
    cancel();
    advance(10);
    tooLate();
    advance(100);
    assert.deepEqual(fired, ["called"]);
  });

  check("a call can cancel a later one and schedule another", ({ clock, advance }) => {
    const fired: string[] = [];
    const cancel = clock.schedule(20, () => fired.push("cancelled"));
    clock.schedule(10, () => {
      cancel();
      clock.schedule(10, () => fired.push("scheduled within"));
    });
    advance(10);
    advance(10);
    advance(10);
    assert.deepEqual(fired, ["scheduled within"]);
  });

  check("a negative delay counts as zero", ({ clock, advance }) => {
    let calls = 0;
    clock.schedule(-5, () => calls++);
    assert.equal(calls, 0, "not within the call of schedule");
    advance(1);
    assert.equal(calls, 1);
  });

  check("a delay may be longer than one timer can hold, or infinite", ({ clock, advance }) => {
    const fired: string[] = [];
    clock.schedule(LONG_MS, () => fired.push("long"));
    const cancel = clock.schedule(Number.POSITIVE_INFINITY, () => fired.push("never"));
    advance(LONG_MS - 1);
    assert.deepEqual(fired, []);
    advance(1);
    assert.deepEqual(fired, ["long"]);
    cancel();
  });

  check("works if single functions are passed on", ({ clock, advance }) => {
    const { nowMs, monotonicMs, schedule } = clock;
    const startMs = monotonicMs();
    let calls = 0;
    schedule(5, () => calls++);
    advance(5);
    assert.equal(calls, 1);
    assert.ok(monotonicMs() >= startMs);
    assert.ok(Number.isFinite(nowMs()));
  });
}
