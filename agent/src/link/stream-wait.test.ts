import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { StreamWait } from "./stream-wait.ts";

test("waits end with the time, a signal or the stream, and leave no listeners behind", async (t) => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const { promise, reject } = Promise.withResolvers<void>();
  const reactions = t.mock.method(promise, "then").mock;
  const wait = new StreamWait(promise);
  for (let round = 0; round < 5; round++) {
    const over = wait.pause(clock, 1_000, [stop.signal]);
    await clock.advance(1_000);
    await over;
  }
  assert.equal(reactions.callCount(), 1);
  assert.equal(getEventListeners(stop.signal, "abort").length, 0);
  const ended = wait.pause(clock, 1_000, [stop.signal]);
  reject(new Error("broken"));
  await assert.rejects(ended, /broken/);
  await assert.rejects(wait.pause(clock, 1_000, [stop.signal]), /broken/);
  const sound = new StreamWait(new Promise(() => {}));
  const stopped = sound.pause(clock, 1_000, [stop.signal]);
  stop.abort();
  await stopped;
  await sound.pause(clock, 1_000, [stop.signal]);
  assert.equal(clock.pending, 0);
});
