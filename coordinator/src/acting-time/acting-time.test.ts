import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { createMemoryStore, type Op, type Store, StoreError } from "../store/index.ts";
import { ActingTime } from "./acting-time.ts";

const HOUR_MS = 3_600_000;
const OPS: readonly Op[] = [{ type: "put", key: "a", value: new Uint8Array() }];

/** An `ActingTime`, and a store whose writes end when the test decides. */
class Life {
  readonly clock = new VirtualClock();
  readonly #ends: { succeed: () => void; fail: (error: Error) => void }[] = [];
  readonly time = new ActingTime({ clock: this.clock });
  readonly store: Store = this.time.tracked(
    new Proxy(createMemoryStore({ clock: this.clock }), {
      get: (target, name) =>
        name === "txn"
          ? () =>
              new Promise((resolve, reject) =>
                this.#ends.push({
                  succeed: () => resolve({ succeeded: true, revision: 1 }),
                  fail: reject,
                }),
              )
          : Reflect.get(target, name, target),
    }),
  );

  write(): void {
    this.store.txn([], OPS).catch(() => {});
  }

  async end(error?: Error): Promise<void> {
    const first = this.#ends.shift();
    if (error === undefined) first?.succeed();
    else first?.fail(error);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Advances the clock in steps, and reads the time at each step, as a running coordinator does. */
  pass(ms: number, stepMs = 1_000): void {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.clock.advance(Math.min(stepMs, ms - passed));
      this.time.tick();
    }
  }

  ageMs(atMs: number): number {
    const { nowMs, since } = this.time.now();
    return nowMs - since(atMs);
  }
}

type Act = (life: Life) => void | Promise<void>;

const stall: Act = async (life) => {
  life.write();
  life.pass(240_000);
  await life.end();
};

/** Each case advances the clock by 60 s, runs `act`, and advances the clock by 30 s. */
const CASES: readonly { readonly name: string; readonly act: Act; readonly countsMs: number }[] = [
  { name: "nothing happens", act: () => {}, countsMs: 0 },
  {
    name: "a write takes 0.9 s",
    act: async (life) => {
      life.write();
      life.pass(900);
      await life.end();
    },
    countsMs: 900,
  },
  { name: "a write takes 4 min: only its first second counts", act: stall, countsMs: 1_000 },
  {
    name: "writes overlap, each of 40 s",
    act: async (life) => {
      life.write();
      life.pass(20_000);
      life.write();
      life.pass(20_000);
      await life.end();
      life.pass(20_000);
      await life.end();
    },
    countsMs: 1_000,
  },
  {
    name: "the disk is full, and writes are tried every 30 s",
    act: async (life) => {
      for (let count = 0; count < 20; count++) {
        life.write();
        await life.end(new StoreError("NO_SPACE", "full"));
        life.pass(30_000);
      }
      life.write();
      await life.end();
    },
    countsMs: 0,
  },
  {
    name: "a write fails once and none follows: 35 s don't count",
    act: async (life) => {
      life.write();
      await life.end(new StoreError("NO_SPACE", "full"));
      life.pass(60_000);
    },
    countsMs: 25_000,
  },
  {
    name: "a write is refused because of what it is",
    act: async (life) => {
      life.write();
      await life.end(new StoreError("TOO_LARGE", "large"));
      life.pass(10_000);
    },
    countsMs: 10_000,
  },
  {
    name: "the process is held up",
    act: (life) => {
      life.clock.stall(600_000);
      life.time.recordStall(600_000);
    },
    countsMs: 0,
  },
  {
    name: "the machine is suspended: the wall clock jumps and the monotonic one stands still",
    act: (life) => {
      life.clock.jumpWall(600_000);
      life.time.recordStall(600_000);
    },
    countsMs: 0,
  },
  {
    name: "decisions wait for the nodes",
    act: async (life) => {
      const started = Promise.withResolvers<void>();
      life.time.holdUntil(started.promise);
      life.pass(15_000);
      started.resolve();
      await started.promise;
      await life.end();
    },
    countsMs: 0,
  },
  { name: "the wall clock is set forward", act: (life) => life.clock.jumpWall(HOUR_MS), countsMs: 0 },
  { name: "the wall clock is set back", act: (life) => life.clock.jumpWall(-HOUR_MS), countsMs: 0 },
  {
    name: "the wall clock is set back during a stall",
    act: async (life) => {
      life.write();
      life.pass(100_000);
      life.clock.jumpWall(-HOUR_MS);
      life.pass(100_000);
      await life.end();
    },
    countsMs: 1_000,
  },
];

for (const { name, act, countsMs } of CASES)
  test(`counts the acting time when ${name}`, async () => {
    const life = new Life();
    const recordedMs = life.clock.nowMs();
    const beforeMs = life.time.monotonicMs();
    life.pass(60_000);
    await act(life);
    life.pass(30_000);
    assert.equal(life.time.monotonicMs() - beforeMs, 90_000 + countsMs);
    assert.equal(life.ageMs(recordedMs), 90_000 + countsMs, "the age of a time on record");
  });

for (const { name, act } of CASES)
  test(`counts the acting time since a time that was recorded after: ${name}`, async () => {
    const life = new Life();
    life.pass(60_000);
    await act(life);
    life.time.tick();
    const recordedMs = life.clock.nowMs();
    life.pass(30_000);
    assert.equal(life.ageMs(recordedMs), 30_000);
  });

test("the acting time pauses during a stall, and not only after it", () => {
  const life = new Life();
  life.write();
  life.pass(240_000);
  assert.equal(life.time.monotonicMs(), 1_000);
  assert.equal(life.time.leastDelayMs(), 1_000);
});

test("requires no delay of evaluations while the coordinator can act", async () => {
  const life = new Life();
  assert.equal(life.time.leastDelayMs(), 0);
  await stall(life);
  assert.equal(life.time.leastDelayMs(), 0);
});

test("counts time before the start of the process in full", () => {
  const life = new Life();
  const recordedMs = life.clock.nowMs() - HOUR_MS;
  life.pass(10_000);
  assert.equal(life.ageMs(recordedMs), HOUR_MS + 10_000);
  const { nowMs, upSinceMs } = life.time.now();
  assert.equal(nowMs - upSinceMs, 10_000);
});

test("an acting time from before the start excludes the wait for nodes after the start", async () => {
  const life = new Life();
  const recordedMs = life.clock.nowMs() - HOUR_MS;
  const started = Promise.withResolvers<void>();
  life.time.holdUntil(started.promise);
  life.pass(15_000);
  started.resolve();
  await life.end();
  life.pass(10_000);
  assert.equal(life.ageMs(recordedMs), HOUR_MS + 10_000);
});

test("a time during a stall counts from the end of the stall", async () => {
  const life = new Life();
  life.write();
  life.pass(100_000);
  const recordedMs = life.clock.nowMs();
  life.pass(140_000);
  await life.end();
  life.pass(30_000);
  assert.equal(life.ageMs(recordedMs), 30_000);
});

test("a time in the future was recorded before the clock was set back", () => {
  const life = new Life();
  assert.equal(life.ageMs(life.clock.nowMs() + HOUR_MS), Number.POSITIVE_INFINITY);
});

test("a time that was recorded between a step of the wall clock and its detection counts from the step", () => {
  const life = new Life();
  life.pass(2 * HOUR_MS);
  life.clock.jumpWall(-HOUR_MS);
  life.clock.advance(500);
  const recordedMs = life.clock.nowMs();
  life.clock.advance(500);
  life.time.tick();
  life.pass(30_000);
  assert.equal(life.ageMs(recordedMs), 30_500);
});

test("the acting time continues after a failed wait for the nodes", async () => {
  const life = new Life();
  const started = Promise.withResolvers<void>();
  life.time.holdUntil(started.promise);
  life.pass(15_000);
  assert.equal(life.time.monotonicMs(), 0);
  started.reject(new Error("by the test"));
  await life.end();
  life.pass(10_000);
  assert.equal(life.time.monotonicMs(), 10_000);
});

test("the age of a new time is exact after a thousand stalls", async () => {
  const life = new Life();
  for (let count = 0; count < 1_000; count++) {
    life.write();
    life.pass(3_000);
    await life.end();
    life.pass(1_000);
  }
  const recordedMs = life.clock.nowMs();
  await stall(life);
  assert.equal(life.ageMs(recordedMs), 1_000);
});

test("detects that the process was blocked before it reads the time", () => {
  const clock = new VirtualClock();
  let held = false;
  const time: ActingTime = new ActingTime({
    clock,
    checkStall: () => {
      if (held) return;
      held = true;
      time.recordStall(600_000);
    },
  });
  clock.stall(600_000);
  assert.equal(time.monotonicMs(), 0);
});
