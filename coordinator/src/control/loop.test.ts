import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { settled } from "../../test/support/until.ts";
import { Loop } from "./loop.ts";

test("runs a key once however often it was woken", async () => {
  const { loop, ran } = start();
  for (let times = 0; times < 5; times++) loop.wake("a");
  loop.wake("b");
  await settled();
  assert.deepEqual(ran, ["a", "b"]);
});

test("runs a key again that was woken while it ran", async () => {
  let release = (): void => {};
  const { loop, ran } = start(async (_key, times) => {
    if (times === 1) await new Promise<void>((resolve) => (release = resolve));
    return undefined;
  });
  loop.wake("a");
  await settled();
  loop.wake("a");
  loop.wake("a");
  await settled();
  assert.deepEqual(ran, ["a"], "never two at a time");
  release();
  await settled();
  assert.deepEqual(ran, ["a", "a"]);
});

test("runs a resting key once after its rest, however often it was woken during it", async () => {
  const { loop, clock, ran } = start(
    async () => undefined,
    (key) => (key === "a" ? 100 : 0),
  );
  loop.wake("a");
  await settled();
  for (let times = 0; times < 5; times++) {
    loop.wake("a");
    loop.wake("b");
    await settled();
    clock.advance(19);
  }
  assert.deepEqual(ran.filter((key) => key === "a").length, 1);
  assert.deepEqual(ran.filter((key) => key === "b").length, 5);
  clock.advance(5);
  await settled();
  assert.deepEqual(ran.filter((key) => key === "a").length, 2);
  clock.advance(1_000);
  await settled();
  assert.deepEqual(ran.filter((key) => key === "a").length, 2, "not again without being woken");
});

test("runs a key again after the requested delay, and only once if it was woken before", async () => {
  const { loop, clock, ran } = start(async (_key, times) => (times === 1 ? 500 : undefined));
  loop.wake("a");
  await settled();
  clock.advance(499);
  await settled();
  assert.equal(ran.length, 1);
  loop.wake("a");
  await settled();
  assert.equal(ran.length, 2);
  clock.advance(10_000);
  await settled();
  assert.equal(ran.length, 2);
  assert.equal(clock.pending, 0);
});

test("retries a failed key with increasing delays, without delaying other keys", async () => {
  const { loop, clock, ran } = start(async (key) => {
    if (key === "bad") throw new Error("no");
    return undefined;
  });
  loop.wake("bad");
  loop.wake("good");
  await settled();
  assert.deepEqual(ran, ["bad", "good"]);
  const pauses: number[] = [];
  for (let failures = 0; failures < 10; failures++) {
    const before = ran.length;
    let waited = 0;
    while (ran.length === before) {
      clock.advance(100);
      waited += 100;
      await settled();
    }
    pauses.push(waited);
  }
  assert.deepEqual(pauses, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
});

test("resets the retry delay after a success", async () => {
  const { loop, clock, ran } = start(async (_key, times) => {
    if (times !== 3) throw new Error("no");
    return undefined;
  });
  loop.wake("a");
  await settled();
  for (const pause of [200, 400]) {
    clock.advance(pause);
    await settled();
  }
  assert.equal(ran.length, 3);
  loop.wake("a");
  await settled();
  clock.advance(200);
  await settled();
  assert.equal(ran.length, 5);
});

test("close waits for the running key and starts no other", async () => {
  let release = (): void => {};
  const { loop, clock, ran } = start(async () => {
    await new Promise<void>((resolve) => (release = resolve));
    return 100;
  });
  loop.wake("a");
  loop.wake("b");
  await settled();
  let closed = false;
  const closing = loop.close().then(() => {
    closed = true;
  });
  await settled();
  assert.equal(closed, false);
  release();
  await closing;
  loop.wake("c");
  clock.advance(60_000);
  await settled();
  assert.deepEqual(ran, ["a"]);
  assert.equal(clock.pending, 0);
});

test("under random wakes, no wake is lost and one key runs at a time", async () => {
  for (let seed = 0; seed < 30; seed++) {
    const random = randomOf(seed);
    const newest = new Map<string, number>();
    const seen = new Map<string, number>();
    let running = 0;
    const { loop, clock } = start(async (key) => {
      assert.equal(++running, 1);
      const version = newest.get(key) ?? 0;
      for (let waits = 0; waits < random.below(3); waits++) await settled();
      running--;
      if (random.chance(0.2)) throw new Error("no");
      seen.set(key, version);
      return undefined;
    });
    for (let step = 0; step < 100; step++) {
      const key = `k${random.below(4)}`;
      newest.set(key, (newest.get(key) ?? 0) + 1);
      loop.wake(key);
      if (random.chance(0.3)) await settled();
    }
    for (let rounds = 0; rounds < 60; rounds++) {
      clock.advance(30_000);
      for (let waits = 0; waits < 20; waits++) await settled();
    }
    assert.deepEqual([...seen].sort(), [...newest].sort(), `seed ${seed}`);
    await loop.close();
  }
});

function start(
  work: (key: string, times: number) => Promise<number | undefined> = async () => undefined,
  restMs?: (key: string) => number,
) {
  const clock = new VirtualClock();
  const ran: string[] = [];
  const loop = new Loop({
    name: "test",
    clock,
    ...(restMs && { restMs }),
    log: pino({ level: "silent" }),
    reconcile: (key) => {
      ran.push(key);
      return work(key, ran.filter((k) => k === key).length);
    },
  });
  return { loop, clock, ran };
}
