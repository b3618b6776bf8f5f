import assert from "node:assert/strict";
import { EventEmitter, getEventListeners } from "node:events";
import { test } from "node:test";
import { drained } from "./stream.ts";

test("waiting for a slow reader leaves no listener on its call or on the signal", async () => {
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
