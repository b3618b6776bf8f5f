import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { anEvent, eventLine, everyEvent } from "../../test/support/events.ts";
import { settled, until } from "../../test/support/until.ts";
import { createMemoryStore, type Store, StoreError } from "../store/index.ts";
import {
  COALESCE_MS,
  type EventLimits,
  FLUSH_MS,
  MAX_PER_WRITE,
  MAX_WAITING,
  REFILL_MS,
  WATCHERS_AT_ONCE,
} from "./limits.ts";
import { EventStore } from "./recorder.ts";

test("writes concurrent events together, numbered in order", async (t) => {
  const { events, store, clock, flush } = await start(t);
  const before = store.revision;
  for (const name of ["a", "b", "c"]) {
    events.record(anEvent({ name }));
    clock.advance(FLUSH_MS / 4);
    await settled();
  }
  await flush();
  assert.equal(store.revision, before + 1, "one transaction");
  assert.deepEqual((await everyEvent(events)).map(eventLine), [
    "1 pod/a Started: container main has started",
    "2 pod/b Started: container main has started",
    "3 pod/c Started: container main has started",
  ]);
});

test("writes more events than fit into one transaction at once in several", async (t) => {
  const { events, clock } = await start(t);
  const count = 2 * MAX_PER_WRITE + 1;
  for (let i = 0; i < count; i++) events.record(anEvent({ name: `p${i}` }));
  clock.advance(0);
  await until("the first two writes", () => {
    clock.advance(0);
    return events.newest >= 2 * MAX_PER_WRITE;
  });
  clock.advance(200);
  await until("the rest", () => events.newest === count);
});

test("counts a repetition within minutes, and gives it the newest number", async (t) => {
  const { events, clock, flush } = await start(t);
  events.record(anEvent());
  events.record(anEvent());
  events.record(anEvent({ name: "other" }));
  await flush();
  clock.advance(60_000);
  events.record(anEvent());
  await flush();
  const found = await everyEvent(events);
  assert.deepEqual(found.map(eventLine), [
    "2 pod/other Started: container main has started",
    "3 pod/web-1 Started ×3: container main has started",
  ]);
  const [, again] = found;
  assert.equal(Number(again?.lastAt?.seconds) - Number(again?.firstAt?.seconds), 60);
});

test("drops no event of an active object when the wall clock is set back an hour", async (t) => {
  const { events, clock, flush } = await start(t);
  const record = async (from: number): Promise<void> => {
    for (let i = from; i < from + 60; i++) {
      events.record(anEvent({ message: `try ${i}` }));
      await flush();
      clock.advance(REFILL_MS);
    }
  };
  await record(0);
  clock.jumpWall(-60 * 60_000);
  await record(60);
  assert.equal(events.stats().droppedByRate, 0);
  assert.equal(events.stats().recorded, 120);
});

test("keeps distant events separate when the wall clock is set back between them", async (t) => {
  const { events, clock, flush } = await start(t);
  events.record(anEvent());
  await flush();
  clock.advance(COALESCE_MS);
  clock.jumpWall(-COALESCE_MS);
  events.record(anEvent());
  await flush();
  assert.deepEqual(
    (await everyEvent(events)).map(({ count }) => count),
    [1, 1],
  );
});

test("records a much later repetition as a new event", async (t) => {
  const { events, clock, flush } = await start(t);
  events.record(anEvent());
  await flush();
  clock.advance(COALESCE_MS);
  events.record(anEvent());
  await flush();
  assert.deepEqual(
    (await everyEvent(events)).map(({ count }) => count),
    [1, 1],
  );
});

test("does not count a repetition of an event from long before a restart", async (t) => {
  const { events, clock, flush, restart } = await start(t);
  events.record(anEvent());
  await flush();
  clock.advance(COALESCE_MS);
  const again = await restart();
  again.record(anEvent());
  await flush(again);
  assert.deepEqual(
    (await everyEvent(again)).map(({ count }) => count),
    [1, 1],
  );
});

test("continues numbers and counts after a restart", async (t) => {
  const { events, flush, restart } = await start(t);
  events.record(anEvent());
  events.record(anEvent({ reason: "Ready" }));
  await flush();
  await events.close();
  const second = await restart();
  assert.equal(second.newest, 2);
  assert.deepEqual({ ...second.stats(), bytes: 0 }, { ...EMPTY_STATS, kept: 2 });
  second.record(anEvent());
  await flush(second);
  assert.deepEqual((await everyEvent(second)).map(eventLine), [
    "2 pod/web-1 Ready: container main has started",
    "3 pod/web-1 Started ×2: container main has started",
  ]);
  assert.equal(second.stats().kept, 2);
});

test("writes pending events when it closes, and wakes no watcher afterwards", async (t) => {
  const { events, clock, restart } = await start(t);
  for (let i = 0; i <= WATCHERS_AT_ONCE; i++) events.subscribe(() => {});
  for (let i = 0; i < 3 * MAX_PER_WRITE; i++) events.record(anEvent({ name: `p${i}` }));
  await events.close();
  assert.equal(clock.pending, 0);
  events.record(anEvent({ name: "late" }));
  assert.equal((await restart()).newest, 3 * MAX_PER_WRITE);
});

test("removes the oldest events beyond the limit", async (t) => {
  const { events, flush, restart } = await start(t, { maxCount: 100, maxBytes: 1e9 });
  for (let i = 1; i <= 250; i++) {
    events.record(anEvent({ name: `p${i}` }));
    if (i % 50 === 0) await flush();
  }
  const found = await everyEvent(events);
  assert.equal(found.length, events.stats().kept);
  assert.ok(found.length <= 100 && found.length > 89, `${found.length} are left`);
  assert.equal(found.at(-1)?.name, "p250");
  assert.equal(events.removedThrough, Number(found[0]?.sequence) - 1);
  assert.equal((await restart()).removedThrough, events.removedThrough, "known after a restart");
});

test("starts the removal of old events after those already removed", async (t) => {
  const { events, flush, store } = await start(t, { maxCount: 100, maxBytes: 1e9 });
  const reads = t.mock.method(store, "range");
  for (let i = 1; i <= 250; i++) {
    events.record(anEvent({ name: `p${i}` }));
    if (i % 50 === 0) await flush();
  }
  const starts = reads.mock.calls.map(({ arguments: [, options] }) => options?.after);
  assert.equal(new Set(starts).size, starts.length, `reads from ${starts.join(", ")}`);
  assert.ok(starts.length > 2, "events are removed more than once");
});

test("counts events as removed as soon as a reader can miss them", async (t) => {
  const { events, flush, store } = await start(t, { maxCount: 100, maxBytes: 1e9 });
  const seen: (readonly [number, number])[] = [];
  const txn = store.txn.bind(store);
  t.mock.method(store, "txn", async (...[compares, ops]: Parameters<Store["txn"]>) => {
    const result = await txn(compares, ops);
    const deleted = ops.flatMap((op) => (op.type === "delete" ? Number(op.key.split("/").at(-1)) : []));
    if (deleted.length === ops.length) seen.push([events.removedThrough, deleted.at(-1) ?? 0]);
    return result;
  });
  for (let i = 1; i <= 150; i++) {
    events.record(anEvent({ name: `p${i}` }));
    if (i % 50 === 0) await flush();
  }
  assert.ok(seen.length > 0);
  for (const [removedThrough, deleted] of seen) assert.equal(removedThrough, deleted);
});

test("removes the oldest events beyond the size limit", async (t) => {
  const { events, flush } = await start(t, { maxCount: 1_000, maxBytes: 50_000 });
  for (let i = 0; i < 60; i++) events.record(anEvent({ name: `p${i}`, message: "x".repeat(1_900) }));
  await flush();
  const { bytes, kept } = events.stats();
  assert.ok(bytes <= 50_000 && kept > 0, `${kept} of ${bytes} bytes are left`);
  assert.equal(events.newest, 60);
});

test("records a repetition of a removed event as a new event", async (t) => {
  const { events, flush } = await start(t, { maxCount: 10, maxBytes: 1e9 });
  events.record(anEvent({ name: "first" }));
  for (let i = 0; i < 30; i++) events.record(anEvent({ name: `p${i}` }));
  await flush();
  events.record(anEvent({ name: "first" }));
  await flush();
  const found = await everyEvent(events);
  assert.equal(found.at(-1)?.name, "first");
  assert.equal(found.at(-1)?.count, 1);
  assert.equal(events.stats().kept, found.length);
});

test("limits an object with too many events, and reports the limit", async (t) => {
  const { events, clock, flush } = await start(t);
  for (let i = 0; i < 40; i++) events.record(anEvent({ message: `try ${i}` }));
  events.record(anEvent({ name: "quiet" }));
  await flush();
  assert.equal((await everyEvent(events)).length, 26, "25 of the loud one, 1 of the other");
  clock.advance(5_000);
  await until("the note", async () => {
    clock.advance(200);
    return (await everyEvent(events)).length === 27;
  });
  const note = (await everyEvent(events)).at(-1);
  assert.equal(note?.reason, "EventsDropped");
  assert.match(note?.message ?? "", /^15 events of this pod were dropped/);
  assert.deepEqual(
    { ...events.stats(), bytes: 0 },
    { ...EMPTY_STATS, recorded: 27, droppedByRate: 15, kept: 27 },
  );
});

test("writes events that the store rejected later, in order and once", async (t) => {
  const { events, clock, failing, flush } = await start(t);
  failing.on = true;
  events.record(anEvent({ name: "a" }));
  await flush();
  events.record(anEvent({ name: "b" }));
  events.record(anEvent({ name: "a" }));
  assert.equal(events.newest, 0);
  failing.on = false;
  clock.advance(400);
  await settled();
  assert.equal(events.newest, 0, "not before its pause is over");
  clock.advance(100);
  await until("both are written", () => events.newest === 2);
  assert.deepEqual((await everyEvent(events)).map(eventLine), [
    "1 pod/a Started ×2: container main has started",
    "2 pod/b Started: container main has started",
  ]);
});

test("drops events while the store accepts no writes for long, and reports the loss", async (t) => {
  const { events, clock, failing } = await start(t);
  failing.on = true;
  for (let i = 0; i < MAX_WAITING + 500; i++) events.record(anEvent({ name: `p${i}` }));
  assert.equal(events.stats().droppedByBacklog, 500);
  clock.advance(200);
  await settled();
  failing.on = false;
  await until("all that waited", () => {
    clock.advance(1_000);
    return events.newest > MAX_WAITING;
  });
  const lost = (await everyEvent(events)).filter(({ reason }) => reason === "EventsDropped");
  assert.deepEqual(lost.map(eventLine), [
    `${lost[0]?.sequence} coordinator/coordinator EventsDropped: 500 events were dropped while the store accepted no writes`,
  ]);
});

test("shortens long messages", async (t) => {
  const { events, flush } = await start(t);
  events.record(anEvent({ message: "x".repeat(5_000) }));
  await flush();
  const [event] = await everyEvent(events);
  assert.equal(event?.message.length, 2_000);
  assert.ok(event?.message.endsWith("…"));
});

const EMPTY_STATS = { recorded: 0, droppedByRate: 0, droppedByBacklog: 0, kept: 0, bytes: 0 };

async function start(t: TestContext, limits?: EventLimits) {
  const clock = new VirtualClock();
  const failing = { on: false };
  const store = failingStore(createMemoryStore({ clock }), failing);
  const log = pino({ level: "silent" });
  const open = () => EventStore.open({ store, clock, log, ...(limits && { limits }) });
  const events = await open();
  t.after(() => store.close());
  const flush = async (which = events): Promise<void> => {
    const before = which.newest;
    clock.advance(200);
    for (let looks = 0; looks < 20; looks++) await settled();
    if (!failing.on) assert.ok(which.newest > before, "nothing was written");
  };
  return { events, clock, store, failing, flush, restart: open };
}

function failingStore(store: Store, failing: { readonly on: boolean }): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "txn" && failing.on)
        return () => Promise.reject(new StoreError("NO_SPACE", "the disk is full"));
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
