import assert from "node:assert/strict";
import { EventEmitter, getEventListeners } from "node:events";
import { test } from "node:test";
import { FrameWriter, type ServeStream } from "./frame-writer.ts";

test("waiting for room leaves no listeners on the session's signal and its stream", async () => {
  const stream = new FullStream();
  const { signal } = new AbortController();
  const writer = new FrameWriter(stream as unknown as ServeStream, signal);

  for (let round = 0; round < 3; round += 1) {
    const sent = writer.send({ $case: "stdout", value: Buffer.from("x") });
    stream.emit("drain");
    await sent;
  }

  assert.equal(stream.frames, 3);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.equal(stream.listenerCount("drain"), 0);
});

test("the end of the session ends a wait for room", async () => {
  const stream = new FullStream();
  const session = new AbortController();
  const writer = new FrameWriter(stream as unknown as ServeStream, session.signal);

  const sent = writer.send({ $case: "stdout", value: Buffer.from("x") });
  session.abort();

  await sent;
  assert.equal(stream.listenerCount("drain"), 0);
});

/** A stream whose buffer is always full. */
class FullStream extends EventEmitter {
  frames = 0;

  write(): boolean {
    this.frames += 1;
    return false;
  }
}
