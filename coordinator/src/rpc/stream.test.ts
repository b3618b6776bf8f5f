import assert from "node:assert/strict";
import { EventEmitter, getEventListeners, once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { drained, forEachRequest, requestsOf, untilAccepted } from "./stream.ts";

/** Makes a stream of objects a call, of which only the stream is used. */
function callOf<T>(stream: PassThrough): ServerDuplexStream<T, unknown> {
  return stream as unknown as ServerDuplexStream<T, unknown>;
}

test("leaves no listener on the call or on the signal after waiting for a slow reader", async () => {
  const call = new EventEmitter();
  const stopping = new AbortController();
  for (const event of ["drain", "close"]) {
    const waiting = drained(call, stopping.signal);
    call.emit(event);
    await waiting;
  }
  const waiting = drained(call, stopping.signal);
  assert.equal(getEventListeners(stopping.signal, "abort").length, 1);
  stopping.abort();
  await waiting;
  await drained(call, stopping.signal);
  assert.deepEqual(
    [
      call.listenerCount("drain"),
      call.listenerCount("close"),
      getEventListeners(stopping.signal, "abort").length,
    ],
    [0, 0, 0],
  );
});

test("stops waiting for the acceptance of a message when the call ends", async () => {
  const over = new AbortController();
  await untilAccepted((onAccepted) => onAccepted(), over.signal);
  const waiting = untilAccepted(() => {}, over.signal);
  assert.equal(getEventListeners(over.signal, "abort").length, 1);
  over.abort();
  await waiting;
  await untilAccepted(() => assert.fail("it was sent"), over.signal);
  assert.equal(getEventListeners(over.signal, "abort").length, 0);
});

test("reads at most 16 requests ahead of a slow handler", async () => {
  const call = new PassThrough({ objectMode: true, highWaterMark: 1 });
  const stopping = new AbortController();
  const requests = requestsOf(callOf<number>(call), stopping.signal);
  for (let request = 0; request < 100; request++) call.write(request);
  assert.equal((await requests.next()).value, 0);
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(call.isPaused(), true);
  const received = [0];
  while (received.length < 100) received.push((await requests.next()).value as number);
  assert.deepEqual(
    received,
    Array.from({ length: 100 }, (_, index) => index),
  );
  stopping.abort();
  assert.equal((await requests.next()).done, true);
});

test("ends a stream of requests at the first one that its check refuses", async () => {
  const call = new PassThrough({ objectMode: true });
  const stopping = new AbortController();
  const seen: unknown[] = [];
  const requests = requestsOf(callOf<unknown>(call), stopping.signal, (request) => {
    if (request === "bad") throw new Error("refused");
  });
  for (const request of ["good", "bad", "unread"]) call.write(request);
  await assert.rejects(async () => {
    for await (const request of requests) seen.push(request);
  }, /refused/);
  assert.deepEqual(seen, ["good"]);
  assert.equal(getEventListeners(stopping.signal, "abort").length, 0);
});

for (const [title, iteratorOf] of [
  ["a call", (requests: AsyncIterator<number, undefined>) => requests],
  ["another iterator", (requests: AsyncIterator<number, undefined>) => ({ next: () => requests.next() })],
] as const) {
  const start = () => {
    const call = new PassThrough({ objectMode: true, highWaterMark: 1 });
    const stopping = new AbortController();
    const requests = requestsOf(callOf<number>(call), stopping.signal, (request) => {
      if (request === 50) throw new Error("refused");
    });
    return { call, stopping, requests: iteratorOf(requests) };
  };
  const write = async (call: PassThrough, count: number): Promise<void> => {
    for (let request = 1; request <= count; request++) if (!call.write(request)) await once(call, "drain");
  };

  test(`calls a function for each request of ${title} in order, until the client ends the stream`, async () => {
    const { call, stopping, requests } = start();
    const seen: number[] = [];
    const done = forEachRequest(requests, (request) => seen.push(request));
    await write(call, 40);
    call.end();
    await done;
    assert.deepEqual(
      seen,
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    stopping.abort();
  });

  test(`stops calling a function for each request of ${title} when it throws, or a request is refused`, async () => {
    for (const [count, bad, message] of [
      [30, 20, /can't handle/],
      [60, 100, /refused/],
    ] as const) {
      const { call, requests } = start();
      const seen: number[] = [];
      const done = forEachRequest(requests, (request) => {
        if (request === bad) throw new Error("can't handle");
        seen.push(request);
      });
      const refused = assert.rejects(done, message);
      for (let request = 1; request <= count; request++) call.write(request);
      await refused;
      assert.equal(seen.length, Math.min(bad, 50) - 1);
    }
  });

  test(`stops calling a function for each request of ${title} when the signal aborts`, async () => {
    const { call, stopping, requests } = start();
    const seen: number[] = [];
    const done = forEachRequest(requests, (request) => {
      seen.push(request);
      if (request === 3) stopping.abort();
    });
    for (const request of [1, 2, 3]) call.write(request);
    await done;
    assert.deepEqual(seen, [1, 2, 3]);
    assert.equal(getEventListeners(stopping.signal, "abort").length, 0);
  });
}
