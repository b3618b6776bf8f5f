import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { testEventLog } from "../../test/event-log-contract.ts";
import { anEvent, eventLine, everyEvent } from "../../test/support/events.ts";
import { until } from "../../test/support/until.ts";
import { createMemoryStore } from "../store/index.ts";
import { FollowedEvents } from "./followed-events.ts";
import { DEFAULT_EVENT_LIMITS, type EventLimits } from "./limits.ts";
import { type EventBatch, type EventQuery, followEvents } from "./query.ts";
import { EventStore } from "./recorder.ts";

/** The time limit of a watch, so that a watch without events fails the test. */
const WAIT_MS = 30_000;
const ALL: EventQuery = { namespace: "", kind: "", name: "", type: "", reason: "", sinceMs: undefined };

test("reads and watches the events of another coordinator", async (t) => {
  const { written, write, follow } = await start(t);
  await write("a");
  const followed = await follow();
  assert.equal(followed.newest, 1);
  const batches = followEvents(followed, ALL, 0, AbortSignal.timeout(WAIT_MS));
  assert.deepEqual(namesOf(await batches.next()), ["a"]);
  const next = batches.next();
  await write("b");
  assert.deepEqual(namesOf(await next), ["b"]);
  await batches.return(undefined);
  assert.deepEqual((await everyEvent(followed)).map(eventLine), (await everyEvent(written)).map(eventLine));
});

test("reports removed old events as a gap, but not repeated events", async (t) => {
  const { written, write, follow } = await start(t, { maxCount: 20, maxBytes: 1_000_000 });
  const followed = await follow();
  await write("a");
  await write("a");
  await until("both events", () => followed.newest === 2);
  assert.equal(followed.removedThrough, 0, "the first one counts up as the second");
  for (let at = 0; at < 25; at++) await write(`p${at}`);
  await until("the last event", () => followed.newest === written.newest);
  await until("the same gap", () => followed.removedThrough === written.removedThrough);
  assert.ok(followed.removedThrough > 0);
});

function namesOf({
  value,
}: IteratorResult<EventBatch, EventBatch | undefined>): readonly string[] | undefined {
  return value?.events.map(({ name }) => name);
}

testEventLog("own events", async (t) => {
  const { written, write } = await start(t);
  return { log: written, write: (count) => writeSeveral(write, count) };
});

testEventLog("followed events", async (t) => {
  const { written, write, follow } = await start(t);
  const log = await follow();
  const writeFollowed = async (count: number): Promise<void> => {
    await writeSeveral(write, count);
    await until("the events are followed", () => log.newest === written.newest);
  };
  return { log, write: writeFollowed };
});

async function writeSeveral(write: (name: string) => Promise<void>, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await write(randomUUID());
}

/** Starts an event log to which one coordinator writes, on a store that others follow. */
async function start(t: TestContext, limits: EventLimits = DEFAULT_EVENT_LIMITS) {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const log = pino({ level: "silent" });
  const written = await EventStore.open({ store, clock, log, limits });
  const over = new AbortController();
  t.after(() => over.abort());
  const follow = () =>
    FollowedEvents.open(
      {
        store,
        limits,
        clock,
        onFatal: (error) => {
          throw error;
        },
      },
      over.signal,
    );
  const write = async (name: string): Promise<void> => {
    const before = written.newest;
    written.record(anEvent({ name }));
    clock.advance(10_000);
    await until("the event is written", () => written.newest > before);
  };
  return { written, write, follow };
}
