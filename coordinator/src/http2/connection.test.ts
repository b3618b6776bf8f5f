import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CODE, encodeFrame, encodeHeaders, encodeNumber, FLAG, FRAME, SETTING } from "./frames.ts";
import { encodeFields } from "./hpack/encode-fields.ts";
import { Peer, REQUEST, windowUpdate } from "./test/peer.ts";

const HEAD = encodeFields([[":status", "200"]]);
const TRAILERS = encodeFields([["grpc-status", "0"]]);
const DATA = (id: number, length: number, flags = 0): Buffer =>
  encodeFrame(FRAME.DATA, flags, id, Buffer.alloc(length, 0x61));

function codeOf(payload: Buffer | undefined): number | undefined {
  return payload?.readUInt32BE(payload.length - 4);
}

/**
 * Returns the failure, because the compiler would otherwise assume that an earlier assertion still
 * holds.
 */
function failureOf(peer: Peer): Peer["failure"] {
  return peer.failure;
}

describe("Connection", () => {
  test("passes requests on and sends their responses", () => {
    const peer = new Peer()
      .begin()
      .open(1, false)
      .send(DATA(1, 3, FLAG.END_STREAM));
    assert.equal(peer.bodies.get(1), "aaa");
    const [stream] = peer.streams;
    stream?.respond(HEAD);
    stream?.write(Buffer.from("hello"), () => stream.end(TRAILERS));
    peer.drain();
    assert.equal(peer.dataOf(1), "hello");
    assert.deepEqual(
      peer.ofType(FRAME.HEADERS).map(({ flags }) => flags),
      [FLAG.END_HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM],
    );
    assert.deepEqual(peer.closed, [1]);
    assert.equal(peer.connection.openStreams, 0);
  });

  test("sends no more of a body than the stream's window allows", () => {
    const peer = new Peer().begin([[SETTING.INITIAL_WINDOW_SIZE, 3]]).open(1);
    let isTaken = false;
    peer.streams[0]?.write(Buffer.from("hello"), () => {
      isTaken = true;
    });
    assert.equal(peer.drain().dataOf(1), "hel");
    assert.equal(peer.send(windowUpdate(1, 1)).dataOf(1), "hell");
    assert.equal(isTaken, false);
    peer.send(windowUpdate(1, 1));
    assert.equal(isTaken, true);
  });

  test("shares the connection's window among streams, and continues when it grows", () => {
    const peer = new Peer()
      .begin([[SETTING.INITIAL_WINDOW_SIZE, 1_000_000]])
      .open(1)
      .open(3);
    for (const stream of peer.streams) stream.write(Buffer.alloc(40_000, 0x61), () => {});
    peer.drain();
    assert.deepEqual([peer.dataOf(1).length, peer.dataOf(3).length], [40_000, 25_535]);
    peer.send(windowUpdate(0, 100_000));
    assert.equal(peer.dataOf(3).length, 40_000);
  });

  test("buffers a limited number of bytes for a transport that accepts none", () => {
    const peer = new Peer().begin([[SETTING.INITIAL_WINDOW_SIZE, 1_000_000]]);
    peer.send(windowUpdate(0, 100_000_000));
    for (let id = 1; id < 199; id += 2) peer.open(id);
    for (const stream of peer.streams) stream.write(Buffer.alloc(30_000), () => {});
    const { bytes } = peer.connection.takeOutput();
    assert.ok(bytes.length > 60_000 && bytes.length < 90_000, String(bytes.length));
    peer.connection.resume();
    assert.ok(peer.connection.hasOutput);
  });

  test("drops a message of which no byte was sent when the stream ends", () => {
    const peer = new Peer().begin([[SETTING.INITIAL_WINDOW_SIZE, 0]]).open(1);
    peer.streams[0]?.write(Buffer.from("hello"), () => {});
    peer.streams[0]?.end(TRAILERS);
    peer.drain();
    assert.deepEqual(peer.closed, [1]);
    assert.equal(peer.dataOf(1), "");
  });

  test("sends the rest of a partly sent message before the stream ends", () => {
    const peer = new Peer().begin([[SETTING.INITIAL_WINDOW_SIZE, 3]]).open(1);
    peer.streams[0]?.write(Buffer.from("hello"), () => {});
    peer.drain().streams[0]?.end(TRAILERS);
    assert.deepEqual(peer.drain().closed, []);
    assert.equal(peer.send(windowUpdate(1, 10)).dataOf(1), "hello");
    assert.deepEqual(peer.closed, [1]);
  });

  test("extends the window only by the bytes of complete requests", () => {
    const peer = new Peer().begin().open(1, false).open(3, false);
    peer.send(DATA(1, 16_000), DATA(1, 16_000), DATA(3, 16_000));
    assert.equal(peer.ofType(FRAME.WINDOW_UPDATE).length, 0, "an open request keeps its bytes");
    peer.send(DATA(1, 1_000, FLAG.END_STREAM));
    assert.deepEqual(
      peer.ofType(FRAME.WINDOW_UPDATE).map(({ payload }) => codeOf(payload)),
      [33_000],
    );
    peer.send(DATA(3, 16_000), DATA(3, 16_000), DATA(3, 1_536));
    assert.equal(peer.failure, undefined);
    peer.open(5, false).send(DATA(5, 16_000));
    assert.equal(failureOf(peer)?.code, CODE.FLOW_CONTROL_ERROR);
  });

  test("ignores frames of streams that it has reset", () => {
    const peer = new Peer().begin().open(1, false);
    peer.streams[0]?.reset();
    const count = peer.drain().frames.length;
    peer.send(DATA(1, 100), windowUpdate(1, 5), encodeHeaders(1, TRAILERS, true));
    assert.equal(peer.frames.length, count);
    assert.equal(peer.failure, undefined);
  });

  test("refuses streams beyond its limit, and keeps the others", () => {
    const peer = new Peer({ maxStreams: 2 }).begin().open(1).open(3).open(5);
    assert.deepEqual(
      peer.ofType(FRAME.RST_STREAM).map(({ streamId, payload }) => [streamId, codeOf(payload)]),
      [[5, CODE.REFUSED_STREAM]],
    );
    assert.equal(peer.connection.openStreams, 2);
  });

  test("refuses streams after its GOAWAY, and ends those that are open", () => {
    const peer = new Peer().begin().open(1);
    peer.connection.leave();
    peer.drain().open(3);
    assert.equal(peer.streams.length, 1);
    assert.equal(codeOf(peer.ofType(FRAME.GOAWAY)[0]?.payload), CODE.NO_ERROR);
    peer.streams[0]?.end(TRAILERS);
    assert.equal(peer.drain().connection.openStreams, 0);
  });

  test("resets streams whose window stays closed", () => {
    const peer = new Peer()
      .begin([[SETTING.INITIAL_WINDOW_SIZE, 0]])
      .open(1)
      .open(3);
    peer.streams[0]?.write(Buffer.from("hello"), () => {});
    peer.nowMs = 1_000;
    assert.equal(peer.connection.resetStalled(-1), 0);
    assert.equal(peer.connection.resetStalled(0), 1);
    assert.deepEqual(peer.closed, [1]);
  });

  test("ends only its own connection when the handling of a request throws", () => {
    const peer = new Peer({
      onRequest: () => {
        throw new Error("a fault");
      },
    });
    peer.begin().open(1);
    assert.equal(failureOf(peer)?.reason, "INTERNAL");
    assert.equal(codeOf(peer.ofType(FRAME.GOAWAY)[0]?.payload), CODE.INTERNAL_ERROR);
  });

  test("ends all streams with the transport", () => {
    const peer = new Peer().begin().open(1).open(3);
    peer.connection.close();
    assert.deepEqual(peer.closed, [1, 3]);
  });
});

describe("Connection ends", () => {
  const PING = encodeFrame(FRAME.PING, 0, 0, Buffer.alloc(8));
  const SETTINGS = encodeFrame(FRAME.SETTINGS, 0, 0, Buffer.alloc(0));
  const ACKNOWLEDGEMENT = encodeFrame(FRAME.SETTINGS, FLAG.ACK, 0, Buffer.alloc(0));
  const CONTINUATION = encodeFrame(FRAME.CONTINUATION, 0, 1, Buffer.alloc(0));
  const priority = encodeFrame(FRAME.PRIORITY, 0, 1, Buffer.from([0, 0, 0, 3, 0]));
  const unknown = encodeFrame(0x77, 0, 0, Buffer.alloc(3));
  const cases: readonly (readonly [
    what: string,
    reason: string,
    allowed: number,
    make: (i: number) => Buffer,
  ])[] = [
    ["streams that are reset at once", "RESETS", 256, (i) => quickReset(2 * i + 1)],
    ["malformed requests", "RESETS", 256, (i) => encodeHeaders(2 * i + 1, TRAILERS, true)],
    ["PING frames", "PINGS", 100, () => PING],
    ["SETTINGS frames", "SETTINGS", 19, () => SETTINGS],
    ["frames of an unknown type", "EMPTY_FRAMES", 200, () => unknown],
    ["PRIORITY frames", "EMPTY_FRAMES", 200, () => priority],
    ["answers to no PING", "EMPTY_FRAMES", 200, () => encodeFrame(FRAME.PING, FLAG.ACK, 0, Buffer.alloc(8))],
    ["acknowledgements of SETTINGS", "EMPTY_FRAMES", 200, () => ACKNOWLEDGEMENT],
    ["WINDOW_UPDATE frames", "WINDOW_UPDATES", 500, () => windowUpdate(0, 1)],
  ];
  for (const [what, reason, allowed, make] of cases)
    test(`ends at a flood of ${what}`, () => {
      const peer = new Peer().begin();
      for (let index = 0; index < allowed; index++) peer.send(make(index));
      assert.equal(peer.failure, undefined, "a normal client is let be");
      peer.send(make(allowed));
      assert.equal(failureOf(peer)?.reason, reason);
      assert.equal(codeOf(peer.ofType(FRAME.GOAWAY)[0]?.payload), CODE.ENHANCE_YOUR_CALM);
      assert.equal(peer.connection.openStreams, 0);
    });

  test("ends at a flood of empty or small DATA frames", () => {
    for (const length of [0, 1]) {
      const peer = new Peer().begin().open(1, false);
      for (let index = 0; index < 202; index++) peer.send(DATA(1, length));
      assert.equal(peer.failure, undefined);
      assert.equal(peer.send(DATA(1, length)).failure?.reason, "EMPTY_FRAMES");
    }
  });

  test("ends at a flood of resets of a stream that has ended", () => {
    const peer = new Peer().begin().open(1);
    peer.streams[0]?.end(TRAILERS);
    peer.drain();
    const reset = encodeNumber(FRAME.RST_STREAM, 1, CODE.CANCEL);
    for (let index = 0; index < 202; index++) peer.send(reset);
    assert.equal(failureOf(peer), undefined);
    assert.equal(peer.send(reset).failure?.reason, "EMPTY_FRAMES");
  });

  test("ends at a flood of CONTINUATION frames, empty or full", () => {
    const start = encodeFrame(FRAME.HEADERS, FLAG.END_STREAM, 1, REQUEST);
    const empty = new Peer().begin().send(start);
    for (let index = 0; index < 7; index++) empty.send(CONTINUATION);
    assert.equal(empty.failure, undefined);
    assert.equal(empty.send(CONTINUATION).failure?.reason, "HEADERS");
    const full = new Peer().begin().send(start);
    const part = encodeFrame(FRAME.CONTINUATION, 0, 1, Buffer.alloc(16_384));
    assert.equal(full.send(part, part).failure?.reason, "HEADERS");
  });

  test("ends for a peer that causes answers and does not read them", () => {
    const peer = new Peer().begin();
    let nowMs = 0;
    while (peer.failure === undefined && nowMs < 10_000_000) {
      // The rate of PING frames is within the limit, but nothing is read.
      peer.nowMs = nowMs += 100;
      peer.connection.receive(PING);
    }
    assert.equal(peer.failure?.reason, "UNREAD");
  });

  test("ends a paced peer after fewer resets", () => {
    const peer = new Peer({ isPaced: true }).begin();
    for (let index = 0; index < 32; index++) peer.send(quickReset(2 * index + 1));
    assert.equal(peer.failure, undefined);
    assert.equal(peer.send(quickReset(65)).failure?.reason, "RESETS");
  });

  test("resets only the stream of a request with too many header fields", () => {
    const large = encodeFields([[":method", "POST"], ...many()]);
    const peer = new Peer()
      .begin()
      .send(encodeHeaders(1, large, true))
      .open(3);
    assert.equal(codeOf(peer.ofType(FRAME.RST_STREAM)[0]?.payload), CODE.ENHANCE_YOUR_CALM);
    assert.equal(peer.streams.length, 1);
  });

  function quickReset(id: number): Buffer {
    return Buffer.concat([
      encodeHeaders(id, REQUEST, false),
      encodeNumber(FRAME.RST_STREAM, id, CODE.CANCEL),
    ]);
  }

  function many(): readonly (readonly [string, string])[] {
    return Array.from({ length: 400 }, (_, index) => [`x-${index}`, "value"] as const);
  }
});

describe("Connection keeps", () => {
  test("keeps a client that sends a window update and a PING for each message", () => {
    const peer = new Peer().begin([[SETTING.INITIAL_WINDOW_SIZE, 100]]).open(1);
    const [stream] = peer.streams;
    for (let index = 0; index < 5_000; index++) {
      stream?.write(Buffer.alloc(100), () => {});
      peer.drain();
      peer.send(windowUpdate(1, 100), windowUpdate(0, 100), encodeFrame(FRAME.PING, 0, 0, Buffer.alloc(8)));
    }
    assert.equal(peer.failure, undefined);
    assert.equal(peer.dataOf(1).length, 500_000);
  });

  test("keeps a client whose streams are cancelled after a while", () => {
    const peer = new Peer().begin();
    for (let index = 0; index < 1_000; index++) {
      peer.open(2 * index + 1);
      peer.nowMs += 250;
      peer.send(encodeNumber(FRAME.RST_STREAM, 2 * index + 1, CODE.CANCEL));
    }
    assert.equal(peer.failure, undefined);
  });
});
