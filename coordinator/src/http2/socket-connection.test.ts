import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { VirtualClock } from "@forage/common/virtual-clock";
import { FrameReader } from "./frame-reader.ts";
import { encodeHeaders, encodeSettings, FRAME, PREFACE } from "./frames.ts";
import type { ServerStream } from "./server-stream.ts";
import { SocketConnection } from "./socket-connection.ts";
import { REQUEST } from "./test/peer.ts";

const STREAMS = [1, 3, 5];

/**
 * Opens three streams on a transport that accepts bytes at once, or only when `accept` is called. Returns the streams,
 * and the numbers of the streams of each write's DATA frames.
 */
async function opened({ accepts }: { readonly accepts: boolean }) {
  const writes: number[][] = [];
  const reader = new FrameReader();
  reader.read(PREFACE, () => {});
  let accept = (): void => {};
  let accepting = true;
  const socket = new Duplex({
    read: () => {},
    write: (bytes: Buffer, _encoding, done) => {
      const data: number[] = [];
      reader.read(bytes, ({ type, streamId }) => type === FRAME.DATA && data.push(streamId));
      if (data.length > 0) writes.push(data);
      if (accepting) done();
      else accept = done;
    },
  });
  const streams: ServerStream[] = [];
  const { monotonicMs, schedule } = new VirtualClock();
  new SocketConnection(socket, {
    ...{ monotonicMs, schedule, maxStreams: 100, isPaced: false },
    onRequest: (stream) => streams.push(stream),
    onFailure: ({ reason }) => assert.fail(reason),
    onClose: () => {},
  });
  socket.push(
    Buffer.concat([PREFACE, encodeSettings([]), ...STREAMS.map((id) => encodeHeaders(id, REQUEST, true))]),
  );
  await turn();
  accepting = accepts;
  return { writes, streams, accept: () => accept() };
}

/** Queues each message after the earlier ones were written, but before the socket confirms a write. */
async function sendInTurn(streams: readonly ServerStream[]): Promise<void> {
  for (const stream of streams) {
    stream.write(Buffer.from("message"), () => {});
    await Promise.resolve();
    await Promise.resolve();
  }
}

test("writes messages without a wait for the confirmation of earlier ones if the socket holds no bytes back", async () => {
  const { writes, streams } = await opened({ accepts: true });
  const atLast = sendInTurn(streams).then(() => [...writes]);
  await turn();
  assert.deepEqual(await atLast, [[1], [3], [5]]);
});

test("joins messages until the socket has accepted the earlier ones", async () => {
  const { writes, streams, accept } = await opened({ accepts: false });
  await sendInTurn(streams);
  await turn();
  assert.deepEqual(writes, [[1]]);
  accept();
  await turn();
  assert.deepEqual(writes, [[1], [3, 5]]);
});
