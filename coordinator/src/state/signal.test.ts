import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "../../test/support/until.ts";
import { Signal } from "./signal.ts";

test("raised any number of times before a wait, it is over at once, and the next one waits", async () => {
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

test("raised during a wait, it is over, and what is raised after that isn't lost", async () => {
  const signal = new Signal();
  const { signal: never } = new AbortController();
  const waiting = signal.wait(never);
  signal.raise();
  await waiting;
  signal.raise();
  await signal.wait(never);
});

test("an abort ends the wait, and one that was before it, too", async () => {
  const signal = new Signal();
  const abort = new AbortController();
  const waiting = signal.wait(abort.signal);
  abort.abort();
  await waiting;
  await signal.wait(abort.signal);
});

test("waits leave no listener behind", async () => {
  const signal = new Signal();
  const abort = new AbortController();
  let listeners = 0;
  const { signal: counted } = abort;
  counted.addEventListener = () => listeners++;
  counted.removeEventListener = () => listeners--;
  for (let times = 0; times < 5; times++) {
    const waiting = signal.wait(counted);
    signal.raise();
    await waiting;
  }
  assert.equal(listeners, 0);
});

function watched(promise: Promise<void>) {
  const state = { done: false, promise };
  void promise.then(() => {
    state.done = true;
  });
  return state;
}
