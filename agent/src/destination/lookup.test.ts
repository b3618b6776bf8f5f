import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { status } from "@grpc/grpc-js";
import type { KnownAnswer } from "./known-answer.ts";
import { Lookup, type ReaderSink, type UpstreamEvents } from "./lookup.ts";

const LINGER_MS = 60_000;

test("sends a reader one message at a time, in order", () => {
  const { lookup, upstream } = aLookup();
  upstream().message(Buffer.from("a"));
  const { sink, messages, take } = aProxy();
  lookup.read(sink);
  upstream().message(Buffer.from("b"));
  upstream().message(Buffer.from("c"));
  assert.deepEqual(messages, ["a-"]);
  take();
  assert.deepEqual(messages, ["a-", "a>c"]);
  take();
  assert.deepEqual(messages, ["a-", "a>c", "c-"]);
  take();
  assert.deepEqual(messages, ["a-", "a>c", "c-"]);
});

test("sends a stalled reader one step to the newest state, and others each state", () => {
  const { lookup, upstream } = aLookup();
  const [stalled, other] = [aProxy(), aProxy()];
  for (const { sink } of [stalled, other]) lookup.read(sink);
  for (const state of ["a", "b", "c"]) {
    upstream().message(Buffer.from(state));
    for (let taken = 0; taken < 2; taken++) other.take();
  }
  assert.deepEqual(other.messages, ["a-", "a>b", "b-", "b>c", "c-"]);
  assert.deepEqual(stalled.messages, ["a-"]);
  stalled.take();
  assert.deepEqual(stalled.messages, ["a-", "a>c"]);
});

test("sends nothing to a reader that has stopped", () => {
  const { lookup, upstream } = aLookup();
  const { sink, messages, take } = aProxy();
  const stop = lookup.read(sink);
  upstream().message(Buffer.from("a"));
  upstream().message(Buffer.from("b"));
  stop();
  take();
  upstream().ended({ code: status.PERMISSION_DENIED, details: "denied" });
  assert.deepEqual(messages, ["a-"]);
});

test("passes a final error on to its readers, and ends", () => {
  const { lookup, upstream, over } = aLookup();
  const { sink, messages } = aProxy();
  lookup.read(sink);
  upstream().ended({ code: status.PERMISSION_DENIED, details: "denied" });
  assert.deepEqual(messages, ["failed: denied"]);
  assert.equal(over(), 1);
});

test("ends once it has had no reader for a minute", () => {
  const { lookup, clock, over, cancelled } = aLookup();
  lookup.read(aProxy().sink)();
  clock.advance(LINGER_MS - 1);
  const stop = lookup.read(aProxy().sink);
  clock.advance(LINGER_MS);
  assert.equal(over(), 0);
  stop();
  clock.advance(LINGER_MS);
  assert.deepEqual([over(), cancelled()], [1, 1]);
});

/** Returns a look-up whose states are letters, with functions that return the newest stream's events and counts. */
function aLookup() {
  const clock = new VirtualClock();
  const streams: UpstreamEvents[] = [];
  const counts = { over: 0, cancelled: 0 };
  // Each step takes two messages, unless it is the first.
  const answer: KnownAnswer<string> = {
    next: (_, message) => message.toString(),
    between: (from, to) => (from === undefined ? [`${to}-`] : [`${from}>${to}`, `${to}-`]).map(bufferOf),
  };
  const lookup = new Lookup<string>({
    ...{ answer, clock, instead: undefined, random: () => 0.5 },
    open: (events) => {
      streams.push(events);
      return () => void counts.cancelled++;
    },
    over: () => void counts.over++,
  });
  const upstream = (): UpstreamEvents => {
    const newest = streams.at(-1);
    assert.ok(newest);
    return newest;
  };
  return { lookup, clock, upstream, over: () => counts.over, cancelled: () => counts.cancelled };
}

/** Returns a proxy's stream that accepts a message each time `take` is called. */
function aProxy() {
  const messages: string[] = [];
  let pending: (() => void) | undefined;
  const sink: ReaderSink = {
    send: (message, onAccepted) => {
      messages.push(message.toString());
      pending = onAccepted;
    },
    fail: ({ details }) => void messages.push(`failed: ${details}`),
  };
  const take = (): void => {
    const onAccepted = pending;
    pending = undefined;
    onAccepted?.();
  };
  return { sink, messages, take };
}

function bufferOf(text: string): Buffer {
  return Buffer.from(text);
}
