import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { encodeFrame, encodeHeaders, FRAME, PREFACE, SETTING } from "./frames.ts";
import { encodeFields } from "./hpack/encode-fields.ts";
import { Peer, REQUEST, windowUpdate } from "./test/peer.ts";

const RUNS = 400;
const FRAMES_PER_RUN = 60;

function garbage(random: Random, maxLength: number): Buffer {
  return Buffer.from(Array.from({ length: random.below(maxLength) }, () => random.below(256)));
}

/** Returns a valid, a nearly valid or a random frame. */
function someFrame(random: Random): Buffer {
  const id = 2 * random.below(20) + 1;
  switch (random.below(8)) {
    case 0:
      return encodeHeaders(id, REQUEST, random.chance(0.5));
    case 1:
      return encodeFrame(FRAME.DATA, random.below(16), id, garbage(random, 300));
    case 2:
      return windowUpdate(random.chance(0.5) ? 0 : id, random.below(2 ** 31));
    case 3:
      return encodeFrame(FRAME.HEADERS, random.below(64), id, garbage(random, 60));
    case 4:
      return encodeFrame(FRAME.SETTINGS, random.below(2), 0, garbage(random, 13));
    case 5:
      return encodeFrame(FRAME.CONTINUATION, random.below(8), id, garbage(random, 30));
    case 6:
      return encodeFrame(random.below(12), random.below(256), random.below(10), garbage(random, 20));
    default:
      return garbage(random, 40);
  }
}

test("neither throws nor buffers without limit for split, truncated or random bytes", () => {
  let failures = 0;
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = randomOf(seed);
    const peer = new Peer();
    const frames = Array.from({ length: FRAMES_PER_RUN }, () => someFrame(random));
    const bytes = Buffer.concat([PREFACE, encodeFrame(FRAME.SETTINGS, 0, 0, Buffer.alloc(0)), ...frames]);
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + random.below(200);
      peer.connection.receive(bytes.subarray(at, at + length));
      at += length;
      for (const stream of peer.streams)
        if (random.chance(0.2) && stream.pending === undefined) stream.write(garbage(random, 500), () => {});
      if (random.chance(0.5)) peer.drain();
    }
    assert.ok(peer.connection.takeOutput().bytes.length < 400_000, `seed ${seed}`);
    peer.connection.close();
    assert.equal(peer.connection.openStreams, 0, `seed ${seed}`);
    assert.deepEqual(peer.closed.toSorted(), peer.streams.map(({ id }) => id).toSorted(), `seed ${seed}`);
    if (peer.failure !== undefined) failures++;
  }
  assert.ok(failures > RUNS / 2, `only ${failures} connections were ended`);
});

test("receives the same requests regardless of how their bytes are split", () => {
  const head = encodeFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/a"],
    ["x", "y".repeat(300)],
  ]);
  const bytes = Buffer.concat([
    PREFACE,
    encodeFrame(FRAME.SETTINGS, 0, 0, Buffer.from([0, SETTING.INITIAL_WINDOW_SIZE, 0, 0, 0, 9])),
    ...[1, 3, 5].flatMap((id) => [
      encodeHeaders(id, head, false),
      encodeFrame(FRAME.DATA, 0, id, Buffer.alloc(500, 0x61)),
      encodeFrame(FRAME.DATA, 1, id, Buffer.from("end")),
    ]),
  ]);
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomOf(seed);
    const peer = new Peer();
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + random.below(40);
      peer.send(bytes.subarray(at, at + length));
      at += length;
    }
    assert.equal(peer.failure, undefined);
    assert.deepEqual([...peer.bodies.values()], Array(3).fill(`${"a".repeat(500)}end`), `seed ${seed}`);
  }
});
