import assert from "node:assert/strict";
import { test } from "node:test";
import { CODE, encodeFrame, FRAME } from "./frames.ts";
import { Peer } from "./test/peer.ts";

const PART_BYTES = 16_000;
const WINDOW_BYTES = 65_535;

function data(id: number, length: number): Buffer {
  return encodeFrame(FRAME.DATA, 0, id, Buffer.alloc(length, 0x61));
}

/** Returns the failure, because the compiler would otherwise assume that an earlier assertion still holds. */
function failureOf(peer: Peer): Peer["failure"] {
  return peer.failure;
}

/** Returns by how many bytes the windows of the connection (0) and of the streams were extended. */
function extended(peer: Peer): Record<number, number> {
  const sums: Record<number, number> = {};
  for (const { streamId, payload } of peer.ofType(FRAME.WINDOW_UPDATE))
    sums[streamId] = (sums[streamId] ?? 0) + payload.readUInt32BE(0);
  return sums;
}

test("lets a peer continue a request of which everything was read", () => {
  const peer = new Peer().begin().open(1, false);
  for (let sent = 0; sent < 20; sent++) {
    peer.send(data(1, PART_BYTES));
    peer.streams[0]?.returnWindow();
    peer.drain();
  }
  assert.deepEqual([peer.failure, peer.closed], [undefined, []]);
  assert.equal(peer.bodies.get(1)?.length, 20 * PART_BYTES);
});

test("extends no window before the request was read", () => {
  const peer = new Peer().begin().open(1, false);
  for (let sent = 0; sent < 4; sent++) peer.send(data(1, PART_BYTES));
  assert.deepEqual(extended(peer), {});
  peer.streams[0]?.returnWindow();
  peer.drain();
  assert.deepEqual(extended(peer), { 0: 4 * PART_BYTES, 1: 4 * PART_BYTES });
});

test("gives the connection's window back for streams that have received little each", () => {
  const peer = new Peer().begin();
  for (const id of [1, 3, 5, 7, 9]) {
    peer.open(id, false).send(data(id, PART_BYTES));
    peer.streams.at(-1)?.returnWindow();
    peer.drain();
  }
  assert.equal(peer.failure, undefined);
  assert.deepEqual(Object.keys(extended(peer)), ["0"]);
});

test("closes a connection that exceeds its window", () => {
  const peer = new Peer().begin();
  for (const id of [1, 3, 5, 7, 9]) peer.open(id, false).send(data(id, PART_BYTES));
  assert.equal(peer.failure?.code, CODE.FLOW_CONTROL_ERROR);
});

test("widens the windows of a stream, and that of the connection once", () => {
  const peer = new Peer().begin().open(1, false).open(3, false);
  for (const stream of peer.streams) stream.widenWindow(1_000_000);
  peer.drain();
  const extra = 1_000_000 - WINDOW_BYTES;
  assert.deepEqual(extended(peer), { 0: extra, 1: extra, 3: extra });
  assert.equal(peer.ofType(FRAME.WINDOW_UPDATE).length, 3);
  for (let sent = 0; sent < 62; sent++) peer.send(data(1, PART_BYTES));
  assert.equal(failureOf(peer), undefined);
  peer.send(data(1, PART_BYTES));
  assert.equal(failureOf(peer)?.code, CODE.FLOW_CONTROL_ERROR);
});

for (const [smallDataBytes, isClosed] of [
  [undefined, true],
  [1, false],
] as const)
  test(`${isClosed ? "closes" : "keeps"} a connection with many parts of 19 bytes if the smallest part has ${smallDataBytes ?? "64"}`, () => {
    const peer = new Peer(smallDataBytes === undefined ? {} : { smallDataBytes }).begin().open(1, false);
    for (let sent = 0; sent < 1_000; sent++) {
      peer.send(data(1, 19));
      peer.streams[0]?.returnWindow();
    }
    assert.equal(peer.failure?.reason, isClosed ? "EMPTY_FRAMES" : undefined);
  });
