import assert from "node:assert/strict";
import { test } from "node:test";
import { CallLimit } from "./call-limit.ts";
import { RuntimeError } from "./runtime.ts";

const never = new AbortController().signal;

test("runs at most the given number of calls at a time, in order of arrival", async () => {
  const limit = new CallLimit(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const calls = [0, 1, 2, 3].map((i) =>
    limit.run(never, () => {
      begun.push(i);
      return new Promise<void>((end) => ends.push(end));
    }),
  );
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.();
  await calls[1];
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]?.();
  ends[2]?.();
  await new Promise(setImmediate);
  ends[3]?.();
  await Promise.all(calls);
  assert.deepEqual(begun, [0, 1, 2, 3]);
});

test("a failed call releases its slot", async () => {
  const limit = new CallLimit(1);
  await assert.rejects(limit.run(never, () => Promise.reject(new Error("x"))));
  assert.equal(await limit.run(never, async () => 1), 1);
});

test("a call that is cancelled while it waits leaves the queue", async () => {
  const limit = new CallLimit(1);
  const release = await limit.enter(never);
  const giveUp = new AbortController();
  const waiting = limit.enter(giveUp.signal);
  giveUp.abort();
  await assert.rejects(waiting, (error) => error instanceof RuntimeError && error.code === "ABORTED");
  release();
  release();
  const again = await limit.enter(never);
  await assert.rejects(limit.enter(giveUp.signal), RuntimeError);
  again();
});

test("releasing a slot twice frees only one slot", async () => {
  const limit = new CallLimit(1);
  const release = await limit.enter(never);
  const waiting = [limit.enter(never), limit.enter(never)];
  let entered = 0;
  for (const it of waiting) void it.then(() => entered++);
  release();
  release();
  await new Promise(setImmediate);
  assert.equal(entered, 1);
  (await waiting[0])?.();
  (await waiting[1])?.();
});
