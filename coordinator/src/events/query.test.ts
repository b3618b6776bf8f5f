import assert from "node:assert/strict";
import { test } from "node:test";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { testEventLog } from "../../test/event-log-contract.ts";
import { settled } from "../../test/support/until.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { EventLog } from "./event-log.ts";
import { type EventBatch, type EventQuery, followEvents, matches, newestEvents } from "./query.ts";

const all: EventQuery = { namespace: "", kind: "", name: "", type: "", reason: "", sinceMs: undefined };

test("requires all filters to match", () => {
  const event = EventRecord.fromPartial({
    namespace: "shop",
    kind: "pod",
    name: "web-1",
    workloadKind: "container_service",
    workloadName: "web",
    type: "Warning",
    reason: "Unready",
    lastAt: toTimestamp(5_000),
  });
  const cases: readonly (readonly [Partial<EventQuery>, boolean])[] = [
    [{}, true],
    [{ namespace: "shop" }, true],
    [{ namespace: "other" }, false],
    [{ kind: "pod", name: "web-1" }, true],
    [{ kind: "pod", name: "web-2" }, false],
    [{ kind: "container_service", name: "web" }, true],
    [{ kind: "service", name: "web" }, false],
    [{ kind: "pod", name: "web" }, false],
    [{ type: "Normal" }, false],
    [{ reason: "Unready", type: "Warning" }, true],
    [{ reason: "Ready" }, false],
    [{ sinceMs: 5_000 }, true],
    [{ sinceMs: 5_001 }, false],
  ];
  for (const [query, expected] of cases)
    assert.equal(matches({ ...all, ...query }, event), expected, JSON.stringify(query));
});

test("returns the newest events of many pages, and the number up to which it searched", async () => {
  const log = new ScriptedLog(1_234);
  const { events, sequence, gap } = await newestEvents(log, all, 0, 3);
  assert.deepEqual(numbers(events), [1_232, 1_233, 1_234]);
  assert.deepEqual([sequence, gap], [1_234, false]);
  const few = await newestEvents(log, all, 1_233, 100);
  assert.deepEqual(numbers(few.events), [1_234]);
});

test("sends new events to a reader without a number", async () => {
  const log = new ScriptedLog(5);
  const { next, end } = follow(log, undefined);
  assert.deepEqual(await next(), { numbers: [], sequence: 5, gap: false });
  const coming = next();
  log.write(2);
  assert.deepEqual(await coming, { numbers: [6, 7], sequence: 7, gap: false });
  await end();
  assert.equal(log.listeners, 0);
});

test("continues from the store for a slow reader, and reports missed expired events", async () => {
  const log = new ScriptedLog(3);
  const { next, end } = follow(log, 2);
  assert.deepEqual(await next(), { numbers: [3], sequence: 3, gap: false });
  log.write(1_000);
  log.removeThrough(500);
  const batch = await next();
  assert.equal(batch?.gap, true);
  assert.equal(batch?.numbers[0], 501);
  await end();
});

test("reports no gap if everything is kept, and treats a number from the future as the present", async () => {
  const log = new ScriptedLog(10);
  log.removeThrough(5);
  const first = follow(log, 0);
  assert.deepEqual(await first.next(), { numbers: [6, 7, 8, 9, 10], sequence: 10, gap: false });
  await first.end();
  const second = follow(log, 99);
  assert.deepEqual(await second.next(), { numbers: [], sequence: 10, gap: false });
  const coming = second.next();
  log.write(1);
  assert.deepEqual((await coming)?.numbers, [11]);
  await second.end();
});

test("reports events removed before a page is read as a gap, but not those already read", async () => {
  const log = new ScriptedLog(1_000);
  log.beforeRead = () => log.removeThrough(20);
  const followed = follow(log, 10);
  assert.deepEqual(await followed.next().then((it) => [it?.numbers[0], it?.gap]), [21, true]);
  await followed.end();
  assert.equal((await newestEvents(log, all, 10, 5)).gap, true);
  const pages = [() => {}, () => log.removeThrough(400)];
  log.beforeRead = () => pages.shift()?.();
  assert.equal((await newestEvents(log, all, 100, 5)).gap, false, "the first page went up to 600");
});

test("stops waiting when the reader aborts", async () => {
  const log = new ScriptedLog(1);
  const { next, abort } = follow(log, undefined);
  await next();
  const waiting = next();
  await settled();
  abort();
  assert.equal(await waiting, undefined);
  assert.equal(log.listeners, 0);
});

testEventLog("scripted log", async () => {
  const log = new ScriptedLog(0);
  return { log, write: async (count) => log.write(count) };
});

class ScriptedLog implements EventLog {
  newest: number;
  removedThrough = 0;
  beforeRead = (): void => {};
  readonly #listeners = new Set<() => void>();

  constructor(newest: number) {
    this.newest = newest;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  async read(after: number, limit: number) {
    this.beforeRead();
    const first = Math.max(after, this.removedThrough) + 1;
    const last = Math.min(this.newest, first + limit - 1);
    const count = Math.max(0, last - first + 1);
    const events = Array.from({ length: count }, (_, index) =>
      EventRecord.fromPartial({ sequence: BigInt(first + index) }),
    );
    return { events, more: last < this.newest, through: Math.max(after, last) };
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  write(count: number): void {
    this.newest += count;
    for (const listener of this.#listeners) listener();
  }

  removeThrough(sequence: number): void {
    this.removedThrough = sequence;
  }
}

function follow(log: EventLog, after: number | undefined) {
  const over = new AbortController();
  const batches = followEvents(log, all, after, over.signal);
  const next = async () => {
    const { value } = (await batches.next()) as IteratorResult<EventBatch, undefined>;
    return value && { numbers: numbers(value.events), sequence: value.sequence, gap: value.gap };
  };
  return { next, abort: () => over.abort(), end: () => batches.return(undefined) };
}

function numbers(events: readonly EventRecord[]): number[] {
  return events.map(({ sequence }) => Number(sequence));
}
