import assert from "node:assert/strict";
import { test } from "node:test";
import { collected, settled } from "../../test/support/until.ts";
import { Channel } from "./channel.ts";

test("yields items in order, and then ends", async () => {
  const channel = new Channel<number>(10);
  for (const item of [1, 2, 3]) assert.equal(await channel.push(item), true);
  channel.close();
  assert.deepEqual(await collected(channel), [1, 2, 3]);
});

test("push waits while the channel is full", async () => {
  const channel = new Channel<number>(2);
  let pushed = 0;
  const producing = (async () => {
    for (let item = 0; item < 100; item++) {
      await channel.push(item);
      pushed++;
    }
    channel.close();
  })();
  await settled();
  assert.equal(pushed, 2);
  const read: number[] = [];
  for await (const item of channel) {
    read.push(item);
    await settled();
    assert.ok(pushed - read.length <= 2, `${pushed} pushed, ${read.length} read`);
  }
  await producing;
  assert.deepEqual(
    read,
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test("a reader waits for the next item", async () => {
  const channel = new Channel<string>(1);
  const reading = collected(channel);
  await settled();
  await channel.push("late");
  await settled();
  channel.close();
  assert.deepEqual(await reading, ["late"]);
});

test("an error is thrown after the items that were pushed before it", async () => {
  const channel = new Channel<number>(10);
  await channel.push(1);
  channel.close(new Error("broken"));
  const read: number[] = [];
  await assert.rejects(async () => {
    for await (const item of channel) read.push(item);
  }, /broken/);
  assert.deepEqual(read, [1]);
});

test("ignores every close after the first", async () => {
  const channel = new Channel<number>(1);
  channel.close();
  channel.close(new Error("late"));
  assert.deepEqual(await collected(channel), []);
});

test("push returns false after close, or once the reader has stopped", async () => {
  const closed = new Channel<number>(1);
  closed.close();
  assert.equal(await closed.push(1), false);

  const left = new Channel<number>(1);
  await left.push(1);
  const waiting = left.push(2);
  for await (const _ of left) break;
  await waiting;
  assert.equal(await left.push(3), false);

  const full = new Channel<number>(1);
  await full.push(1);
  const late = full.push(2);
  full.close();
  assert.equal(await Promise.race([late, settled()]), false, "a producer that waits is released");
});
