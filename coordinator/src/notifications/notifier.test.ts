import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { settled } from "../../test/support/until.ts";
import type { EventLog } from "../events/event-log.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { Cursor, Message } from "./message.ts";
import { Notifier } from "./notifier.ts";
import type { PostResult } from "./post.ts";
import { NOTIFICATIONS_SCHEMA } from "./settings.ts";

const START_MS = 1_000_000;
const GATHER_MS = 1_000;

/** Events that a test writes, and a receiver with scripted answers. */
class Play {
  readonly clock = new VirtualClock({ startMs: START_MS });
  readonly records: EventRecord[] = [];
  readonly received: Message[] = [];
  answer: (attempt: number) => PostResult = () => ({ type: "delivered" });
  cursor: Cursor | undefined;
  writesFail = false;
  removedThrough = 0;
  attempts = 0;
  reads = 0;
  /** The numbers of unreadable records. */
  readonly unreadable = new Set<bigint>();
  readonly #listeners = new Set<() => void>();

  readonly log: EventLog = {
    ...({} as EventLog),
    read: async (after, limit) => {
      this.reads++;
      const left = this.records.filter(({ sequence }) => Number(sequence) > after);
      const page = left.slice(0, limit);
      const events = page.filter(({ sequence }) => !this.unreadable.has(sequence));
      const through = Number(page.at(-1)?.sequence ?? after);
      return { events, more: left.length > limit, through };
    },
    subscribe: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  constructor() {
    Object.defineProperty(this.log, "newest", { get: () => Number(this.records.at(-1)?.sequence ?? 0n) });
    Object.defineProperty(this.log, "removedThrough", { get: () => this.removedThrough });
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  start(post?: (signal: AbortSignal) => Promise<PostResult>): Notifier {
    const [settings] = NOTIFICATIONS_SCHEMA.parse([
      { name: "ops", url: "https://hooks.example/", secretFile: "/key" },
    ]);
    assert.ok(settings);
    return new Notifier({
      ...{ settings, cluster: "north", events: this.log, clock: this.clock, log: pino({ level: "silent" }) },
      readCursor: async () => this.cursor,
      writeCursor: async (cursor) => {
        if (this.writesFail) throw new Error("the store takes no writes");
        this.cursor = cursor;
      },
      post: async (message, signal) => {
        if (post !== undefined) return post(signal);
        this.attempts++;
        const result = this.answer(this.attempts);
        if (result.type === "delivered") this.received.push(message);
        return result;
      },
    });
  }

  write(count = 1, fields: Parameters<typeof EventRecord.fromPartial>[0] = {}): void {
    for (let index = 0; index < count; index++) {
      const sequence = BigInt(Number(this.records.at(-1)?.sequence ?? 0n) + 1);
      const at = toTimestamp(this.clock.nowMs());
      const times = { firstAt: at, lastAt: at, count: 1 };
      this.records.push(EventRecord.fromPartial({ sequence, type: "Warning", ...times, ...fields }));
    }
    for (const listener of this.#listeners) listener();
  }

  /** Lets all work run that is due within the time. */
  async run(ms: number): Promise<void> {
    await settled();
    await this.clock.run(ms);
    await settled();
  }

  /** Returns the sequence numbers of the events in each message. */
  sent(): number[][] {
    return this.received.map(({ body }) =>
      (JSON.parse(body) as { events: { sequence: string }[] }).events.map(({ sequence }) => Number(sequence)),
    );
  }
}

test("sends new events in order, concurrent ones together, and none from before its first start", async () => {
  const play = new Play();
  play.write(3);
  const notifier = play.start();
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), []);
  play.write(2);
  play.write(1, { type: "Normal" });
  await play.run(GATHER_MS);
  play.write(25);
  await play.run(GATHER_MS);
  const numbers = (first: number, count: number) =>
    Array.from({ length: count }, (_, index) => first + index);
  assert.deepEqual(play.sent(), [[4, 5], numbers(7, 20), numbers(27, 5)]);
  assert.deepEqual(notifier.stats, { delivered: 3, dropped: 0, problem: "" });
  await notifier.close();
  assert.deepEqual([play.listeners, play.clock.pending], [0, 0]);
});

test("sends events that are written while its first position is read and stored", async () => {
  const play = new Play();
  play.write(3);
  play.writesFail = true;
  const notifier = play.start();
  play.write(1);
  await play.run(0);
  play.write(1);
  play.writesFail = false;
  await play.run(10_000);
  assert.deepEqual(play.sent(), [[4, 5]]);
  await notifier.close();
});

test("sends an event with an invalid date without its dates, and later events as usual", async () => {
  const play = new Play();
  const notifier = play.start();
  await play.run(0);
  const absurd = { seconds: 2n ** 62n, nanos: 0 };
  play.write(1, { firstAt: absurd, lastAt: absurd });
  play.write(1);
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[1, 2]]);
  await play.run(1);
  play.write(1, { count: 2 });
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[1, 2], [3]], "later events are no repetitions of it");
  await notifier.close();
});

test("passes over pages of unreadable records, each once", async () => {
  const play = new Play();
  const notifier = play.start();
  await play.run(0);
  play.write(1_200);
  for (let sequence = 1n; sequence <= 1_100n; sequence++) play.unreadable.add(sequence);
  await play.run(GATHER_MS);
  assert.equal(play.sent().flat().length, 100);
  assert.ok(play.reads < 10, `${play.reads} reads`);
  assert.equal(play.cursor?.sequence, 1_200);
  await notifier.close();
});

test("continues at another coordinator at the former position, without repetitions", async () => {
  const play = new Play();
  const first = play.start();
  await play.run(0);
  play.write(2);
  await play.run(GATHER_MS);
  await first.close();
  play.write(1, { type: "Normal" });
  play.write(1);
  const second = play.start();
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[1, 2], [4]]);
  // The first event is repeated: its record has a new number, and the time of its first occurrence.
  play.write(1, { count: 2, firstAt: toTimestamp(START_MS) });
  await play.run(GATHER_MS);
  assert.equal(play.received.length, 2);
  await second.close();
});

test("waits a moment for the answer of a message in progress when it closes, and stores the result", async () => {
  const play = new Play();
  const answer = Promise.withResolvers<PostResult>();
  const notifier = play.start(() => answer.promise);
  await play.run(0);
  play.write();
  await play.run(GATHER_MS);
  const closed = notifier.close();
  answer.resolve({ type: "delivered" });
  await closed;
  assert.deepEqual([play.cursor?.sequence, play.clock.pending], [1, 0]);

  const other = new Play();
  let ended = false;
  const unanswered = other.start((signal) => {
    signal.addEventListener("abort", () => {
      ended = true;
    });
    return new Promise((resolve) =>
      signal.addEventListener("abort", () => resolve({ type: "failed", reason: "aborted" })),
    );
  });
  await other.run(0);
  other.write();
  await other.run(GATHER_MS);
  const ending = unanswered.close();
  await other.run(1_999);
  assert.equal(ended, false);
  await other.run(1);
  await ending;
  assert.deepEqual([ended, other.cursor?.sequence, other.clock.pending], [true, 0, 0]);
});

test("retries the same message with growing delays, and sends later events afterwards", async () => {
  const play = new Play();
  play.answer = (attempt) => (attempt < 4 ? { type: "failed", reason: "HTTP 503" } : { type: "delivered" });
  const notifier = play.start();
  await play.run(0);
  play.write();
  await play.run(GATHER_MS);
  assert.equal(play.attempts, 1);
  play.write();
  await play.run(1_000 + 2_000 - 1);
  assert.deepEqual([play.attempts, play.cursor?.sequence], [2, 0]);
  await play.run(1 + 4_000);
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[1], [2]]);
  await notifier.close();
});

test("drops a message that is refused or failed too often, and continues with the next", async () => {
  const play = new Play();
  play.answer = (attempt) => ({ type: attempt === 1 ? "refused" : "failed", reason: "HTTP 500" });
  const notifier = play.start();
  await play.run(0);
  play.write();
  await play.run(GATHER_MS);
  assert.deepEqual([play.attempts, notifier.stats.dropped, play.cursor?.sequence], [1, 1, 1]);
  play.write();
  await play.run(3_600_000);
  assert.deepEqual(notifier.stats, { delivered: 0, dropped: 2, problem: "HTTP 500" });
  assert.equal(play.attempts, 13);
  play.answer = () => ({ type: "delivered" });
  play.write();
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[3]]);
  await notifier.close();
});

test("reports events that were removed before they could be sent", async () => {
  const play = new Play();
  await play.start().close();
  play.cursor = { sequence: 0, coveredMs: 0 };
  play.write(5);
  play.records.splice(0, 3);
  play.removedThrough = 3;
  const notifier = play.start();
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[4, 5]]);
  assert.equal(JSON.parse(play.received[0]?.body ?? "{}").missed, true);
  await notifier.close();
});

test("stores the position occasionally while no event matches", async () => {
  const play = new Play();
  const notifier = play.start();
  await play.run(0);
  play.write(99, { type: "Normal" });
  await play.run(GATHER_MS);
  assert.equal(play.cursor?.sequence, 0);
  play.write(1, { type: "Normal" });
  await play.run(GATHER_MS);
  assert.equal(play.cursor?.sequence, 100);
  await notifier.close();
});

test("ignores a position from before a restore, and continues with new events", async () => {
  const play = new Play();
  play.cursor = { sequence: 99, coveredMs: 0 };
  play.write(2);
  const notifier = play.start();
  await play.run(GATHER_MS);
  play.write();
  await play.run(GATHER_MS);
  assert.deepEqual(play.sent(), [[3]]);
  await notifier.close();
});

test("waits for a store that accepts no writes, and sends the message again with its id", async () => {
  const play = new Play();
  const notifier = play.start();
  await play.run(0);
  play.writesFail = true;
  play.write();
  await play.run(GATHER_MS);
  play.writesFail = false;
  await play.run(60_000);
  assert.deepEqual(new Set(play.received.map(({ id }) => id)), new Set(["ops-1"]));
  assert.equal(play.received.length, 2);
  assert.equal(play.cursor?.sequence, 1);
  await notifier.close();
});
