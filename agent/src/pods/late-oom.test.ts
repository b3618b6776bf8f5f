import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../clock.ts";
import { withLateOom } from "./late-oom.ts";
import type { ObservedContainer } from "./pod.ts";

const ENDED: ObservedContainer = {
  id: "a",
  container: "main",
  attempt: 1,
  specHash: "h",
  state: "exited",
  exitCode: 137,
};

test("a kill for want of memory that is told after the end is waited for", async () => {
  const host = new Host(3);
  assert.equal((await withLateOom(ENDED, host.look, host.clock, host.signal)).oomKilled, true);
  assert.equal(host.looks, 3);
});

test("not for ever, and not where it can't be", async () => {
  const killed = new Host(Number.POSITIVE_INFINITY);
  assert.deepEqual(await withLateOom(ENDED, killed.look, killed.clock, killed.signal), ENDED);
  assert.equal(killed.nowMs, 500);
  for (const known of [
    { ...ENDED, exitCode: 1 },
    { ...ENDED, oomKilled: true },
  ]) {
    const host = new Host(1);
    assert.deepEqual(await withLateOom(known, host.look, host.clock, host.signal), known);
    assert.equal(host.looks, 0);
  }
});

test("a container that is forgotten meanwhile ended as it was seen", async () => {
  const host = new Host(1);
  assert.deepEqual(await withLateOom(ENDED, () => [], host.clock, host.signal), ENDED);
});

/** Tells of the kill from the n-th look on; its time passes as it is waited for. */
class Host {
  readonly signal = new AbortController().signal;
  readonly #tells: number;
  looks = 0;
  nowMs = 0;
  readonly clock: Clock = {
    nowMs: () => this.nowMs,
    monotonicMs: () => this.nowMs,
    after: (delayMs, call) => {
      this.nowMs += delayMs;
      queueMicrotask(call);
      return () => undefined;
    },
  };

  constructor(tells: number) {
    this.#tells = tells;
  }

  readonly look = (): readonly ObservedContainer[] => {
    this.looks += 1;
    return [this.looks >= this.#tells ? { ...ENDED, oomKilled: true } : ENDED];
  };
}
