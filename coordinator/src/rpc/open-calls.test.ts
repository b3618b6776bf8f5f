import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { OpenCalls } from "./open-calls.ts";

test("leaves no entry in the server's signal, regardless of the number of calls", () => {
  const stopping = new AbortController();
  const calls = new OpenCalls(stopping.signal);
  for (let at = 0; at < 1_000; at++) {
    const { signal, abort, over } = calls.open();
    if (at % 2 === 0) abort();
    assert.equal(signal.aborted, at % 2 === 0);
    over();
  }
  assert.equal(calls.size, 0);
  assert.equal(getEventListeners(stopping.signal, "abort").length, 1);
  // `AbortSignal.any` keeps a set of dependent signals in each source signal.
  const dependants = Object.getOwnPropertySymbols(stopping.signal)
    .map((symbol): unknown => Reflect.get(stopping.signal, symbol))
    .filter((value) => value instanceof Set && value.size > 0);
  assert.deepEqual(dependants, []);
});

test("aborts open and later calls when the server stops", () => {
  const stopping = new AbortController();
  const calls = new OpenCalls(stopping.signal);
  const [open, over] = [calls.open(), calls.open()];
  over.over();
  stopping.abort();
  assert.deepEqual([open.signal.aborted, over.signal.aborted], [true, false]);
  assert.equal(calls.open().signal.aborted, true);
});
