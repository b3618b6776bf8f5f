import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../dashboard/data/api-error.ts";
import { clockTimes } from "../dashboard/data/format.ts";
import { readMessages } from "../dashboard/data/read-messages.ts";

test("labels times of graphs in 24 hours, with seconds if minutes would repeat", () => {
  const afternoon = new Date(2026, 0, 5, 17, 4, 30).getTime() / 1000;
  assert.deepEqual(clockTimes([afternoon, afternoon + 3_600], 3_600), ["17:04", "18:04"]);
  assert.deepEqual(clockTimes([afternoon], 30), ["17:04:30"]);
});

test("reopens a stream of the page with full jitter, and shows the new stream's state", async () => {
  const { messages, waits, lost, refused } = await readThrough([
    () => streamOf('retry: 2000\n\ndata: "one"\n\n:\n\ndata: "t', 'wo"\n\ndata: "cut off"'),
    () => Promise.reject(new ApiError("UNAVAILABLE", "the leader changes")),
    () => Promise.reject(new TypeError("Failed to fetch")),
    () => streamOf('data: "three"\n\n'),
  ]);
  assert.deepEqual(messages, ['"one"', '"two"', '"three"']);
  // Half of 0.5 s after an open stream, of 1 s and of 2 s.
  assert.deepEqual(waits, [250, 500, 1_000, 250]);
  assert.deepEqual([lost, refused], [4, 0]);
});

test("does not reopen a refused stream at once, and notifies the page", async () => {
  const refusal = () => Promise.reject(new ApiError("PERMISSION_DENIED", "no"));
  const { waits, refused } = await readThrough([refusal, refusal]);
  assert.deepEqual([waits, refused], [[15_000, 15_000], 2]);
});

/**
 * Reads these streams one after the other, with half of each longest delay, until there are no
 * more.
 */
async function readThrough(streams: readonly (() => Promise<Response>)[]) {
  const gone = new AbortController();
  const next = streams.values();
  const seen = { messages: [] as string[], waits: [] as number[], lost: 0, refused: 0 };
  await readMessages({
    signal: gone.signal,
    open: async () => (next.next().value ?? (() => Promise.reject(new Error("there is no more"))))(),
    onMessage: (data) => seen.messages.push(data),
    onLost: () => seen.lost++,
    onRefused: () => seen.refused++,
    retryMs: 30_000,
    random: () => 0.5,
    wait: async (delayMs) => {
      if (seen.waits.push(delayMs) === streams.length) gone.abort();
    },
  });
  return seen;
}

/** Returns a stream that fails after these pieces. */
async function streamOf(...pieces: readonly string[]): Promise<Response> {
  const left = pieces.values();
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const { value } = left.next();
      if (value === undefined) controller.error(new TypeError("network error"));
      else controller.enqueue(new TextEncoder().encode(value));
    },
  });
  return new Response(body);
}
