import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { EventLog } from "../src/events/event-log.ts";
import { until } from "./support/until.ts";

export interface EventLogUnderTest {
  readonly log: EventLog;
  /** Writes this number of further events. Resolves once they can be read. */
  readonly write: (count: number) => Promise<void>;
}

/** The contract of every EventLog. `make` creates an empty one for each test. */
export function testEventLog(name: string, make: (t: TestContext) => Promise<EventLogUnderTest>): void {
  const check = (what: string, run: (it: EventLogUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => run(await make(t)));
  const page = async ({ log }: EventLogUnderTest, after: number, limit: number) => {
    const { events, more, through } = await log.read(after, limit);
    return [events.map(({ sequence }) => Number(sequence)), more, through];
  };

  check("an empty log has no newest event", async (it) => {
    assert.deepEqual([it.log.newest, it.log.removedThrough], [0, 0]);
    assert.deepEqual(await page(it, 0, 10), [[], false, 0]);
  });

  check("reads the events in pages, oldest first", async (it) => {
    await it.write(5);
    assert.equal(it.log.newest, 5);
    assert.deepEqual(await page(it, 0, 2), [[1, 2], true, 2]);
    assert.deepEqual(await page(it, 2, 2), [[3, 4], true, 4]);
    assert.deepEqual(await page(it, 4, 2), [[5], false, 5]);
  });

  check("a page that ends with the newest event says that there are no more", async (it) => {
    await it.write(2);
    assert.deepEqual(await page(it, 0, 2), [[1, 2], false, 2]);
    assert.deepEqual(await page(it, 2, 2), [[], false, 2]);
    await it.write(1);
    assert.deepEqual(await page(it, 2, 2), [[3], false, 3]);
  });

  check("calls subscribers after events were written, until they stop", async (it) => {
    const newest: number[] = [];
    const stop = it.log.subscribe(() => newest.push(it.log.newest));
    const later: number[] = [];
    it.log.subscribe(() => later.push(it.log.newest));
    assert.equal(newest.length, 0);
    await it.write(1);
    await until("the first event is reported", () => newest.includes(1));
    stop();
    const calls = newest.length;
    await it.write(1);
    await until("the second event is reported", () => later.includes(2));
    assert.equal(newest.length, calls);
  });
}
