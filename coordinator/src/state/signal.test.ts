import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { settled } from "../../test/support/until.ts";
import { Signal } from "./signal.ts";

test("a wait resolves at once if the signal was raised before, however often, and the next one waits", async () => {
  const signal = new Signal();
  for (let times = 0; times < 3; times++) signal.raise();
  const { signal: never } = new AbortController();
  await signal.wait(never);
  const next = watched(signal.wait(never));
  await settled();
  assert.equal(next.done, false);
  signal.raise();
  await next.promise;
});

test("a wait resolves when the signal is raised, and a later raise is not lost", async () => {
  const signal = new Signal();
  const { signal: never } = new AbortController();
  const waiting = signal.wait(never);
  signal.raise();
  await waiting;
  signal.raise();
  await signal.wait(never);
});

test("an abort ends a wait, also if it was before the wait", async () => {
  const signal = new Signal();
  const abort = new AbortController();
  const waiting = signal.wait(abort.signal);
  abort.abort();
  await waiting;
  await signal.wait(abort.signal);
});

test("all waits with one abort signal share a listener, and a wait with another one moves it", async () => {
  const signal = new Signal();
  const [first, second] = [new AbortController(), new AbortController()];
  const listeners = (): number[] => [first, second].map((it) => getEventListeners(it.signal, "abort").length);
  for (let times = 0; times < 5; times++) {
    const waiting = signal.wait(first.signal);
    signal.raise();
    await waiting;
  }
  assert.deepEqual(listeners(), [1, 0]);
  const waiting = watched(signal.wait(second.signal));
  assert.deepEqual(listeners(), [0, 1]);
  first.abort();
  await settled();
  assert.equal(waiting.done, false);
  second.abort();
  await waiting.promise;
});

function watched(promise: Promise<void>) {
  const state = { done: false, promise };
  void promise.then(() => {
    state.done = true;
  });
  return state;
}
