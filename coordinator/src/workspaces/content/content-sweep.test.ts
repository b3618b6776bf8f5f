import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ContentSweep } from "./content-sweep.ts";
import { MemoryContentStore } from "./memory-content-store.ts";

const HOUR_MS = 3_600_000;

test("deletes an object after it has had no record for the grace period, and keeps an object with a record", async (t) => {
  const { sweep, clock, namesOf } = await setUp(t, ["o/w/orphan", "o/w/kept"]);
  assert.equal(await sweep.sweep(), 0);
  clock.advance(HOUR_MS);
  assert.equal(await sweep.sweep(), 1);
  assert.deepEqual(await namesOf(), ["o/w/kept"]);
});

test("keeps an object that gets a record within the grace period, and restarts the period when it loses the record", async (t) => {
  const { sweep, clock, named, namesOf } = await setUp(t, ["o/w/late"]);
  await sweep.sweep();
  named.add("o/w/late");
  clock.advance(HOUR_MS);
  await sweep.sweep();
  named.delete("o/w/late");
  await sweep.sweep();
  assert.deepEqual(await namesOf(), ["o/w/late"]);
  clock.advance(HOUR_MS);
  await sweep.sweep();
  assert.deepEqual(await namesOf(), []);
});

test("deletes nothing early when the wall clock jumps", async (t) => {
  const { sweep, clock, namesOf } = await setUp(t, ["o/w/orphan"]);
  await sweep.sweep();
  clock.jumpWall(1_000 * HOUR_MS);
  assert.equal(await sweep.sweep(), 0);
  assert.deepEqual(await namesOf(), ["o/w/orphan"]);
});

test("deletes other objects although one object can't be deleted and records can't be removed", async (t) => {
  const { sweep, clock, store, namesOf, warnings, records } = await setUp(t, ["o/w/a", "o/w/b", "o/w/c"]);
  await sweep.sweep();
  clock.stall(2 * HOUR_MS);
  const remove = store.delete.bind(store);
  store.delete = async (object) => {
    if (object === "o/w/a") throw new Error("access denied");
    await remove(object);
  };
  records.removable = false;

  assert.equal(await sweep.sweep(), 2);

  assert.deepEqual(await namesOf(), ["o/w/a"]);
  assert.deepEqual(warnings.slice(-2), [undefined, "o/w/a"]);
  store.delete = remove;
  await sweep.sweep();
  clock.stall(2 * HOUR_MS);
  assert.equal(await sweep.sweep(), 1, "it is tried again after another grace period");
});

test("deletes nothing before the records are loaded", async (t) => {
  const { sweep, clock, records } = await setUp(t, ["o/w/orphan"]);
  await sweep.sweep();
  records.loaded = false;
  clock.stall(2 * HOUR_MS);
  assert.equal(await sweep.sweep(), 0);
});

async function setUp(t: TestContext, objects: readonly string[]) {
  const clock = new VirtualClock();
  const store = new MemoryContentStore({ nowMs: clock.nowMs });
  const named = new Set(["o/w/kept"]);
  const records = { loaded: true, removable: true };
  const warnings: unknown[] = [];
  const content = async function* () {
    yield Buffer.from("content");
  };
  const signal = new AbortController().signal;
  for (const object of objects)
    await store.put(object, content(), { maxBytes: 1_000, verify: () => {}, signal });
  const sweep = new ContentSweep({
    store,
    isNamed: (object) => named.has(object),
    isReady: () => records.loaded,
    before: async () => {
      if (!records.removable) throw new Error("a record can't be removed");
    },
    graceMs: HOUR_MS,
    clock,
    log: { info: () => {}, warn: ({ object }: { object?: unknown }) => void warnings.push(object) } as never,
  });
  t.after(() => sweep.close());
  const namesOf = async () => {
    const names: string[] = [];
    for await (const { object } of store.list("")) names.push(object);
    return names;
  };
  return { clock, named, records, sweep, namesOf, store, warnings };
}
