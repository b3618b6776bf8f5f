import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { Offenders, SessionGuard, type SessionGuardOptions } from "./session-guard.ts";

const ENHANCE_YOUR_CALM = 11;
const PATH = "/test.Guarded/Call";

describe("SessionGuard", { timeout: 300_000 }, () => {
  it("closes a connection that resets its streams at once, and no further stream reaches a handler", async (t) => {
    const { connect, calls, offences, guard } = await served(t);
    const peer = await connect();
    // The frames are written at once, so most of them are in one packet when the connection is closed.
    peer.send(Array.from({ length: 2_000 }, (_, i) => [headers(1 + 2 * i, PATH), reset(1 + 2 * i)]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    await peer.closed;
    assert.ok(calls.length <= 256 + 32, `${calls.length} calls reached the handler`);
    assert.deepEqual(offences, ["RESETS"]);
    assert.equal(guard.size, 0);
  });

  it("counts streams whose path no service has", async (t) => {
    const { connect, offences } = await served(t);
    const peer = await connect();
    peer.send(Array.from({ length: 2_000 }, (_, i) => [headers(1 + 2 * i, "/no/Method"), reset(1 + 2 * i)]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["RESETS"]);
  });

  it("gives the next connection of the same address a smaller budget", async (t) => {
    const { connect, calls, offenders } = await served(t);
    offenders.offend("127.0.0.1", 0);
    const peer = await connect();
    peer.send(Array.from({ length: 2_000 }, (_, i) => [headers(1 + 2 * i, PATH), reset(1 + 2 * i)]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.ok(calls.length <= 32 + 32, `${calls.length} calls reached the handler`);
  });

  it("keeps a connection that resets streams after a while", async (t) => {
    let nowMs = 0;
    const { connect, calls, offences } = await served(t, { monotonicMs: () => nowMs });
    const peer = await connect();
    for (let round = 0; round < 10; round++) {
      const ids = Array.from({ length: 100 }, (_, i) => 1 + 2 * (100 * round + i));
      peer.send(ids.map((id) => [headers(id, PATH)]));
      await until(() => calls.length === 100 * (round + 1));
      nowMs += 250;
      const before = closedOf(calls);
      peer.send(ids.map((id) => [reset(id)]));
      await until(() => closedOf(calls) === before + 100);
    }
    assert.deepEqual(offences, []);
  });

  it("closes a connection that opens too many streams without accepted credentials", async (t) => {
    const { connect, offences } = await served(t, { maxUnprovenStreams: 5 });
    const peer = await connect();
    peer.send(Array.from({ length: 6 }, (_, i) => [headers(1 + 2 * i, PATH)]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["UNPROVEN"]);
  });

  it("closes open connections without credentials earlier once their address has offended", async (t) => {
    const { connect, calls, offenders, offences } = await served(t, { maxUnprovenStreams: 64 });
    const peer = await connect();
    peer.send(Array.from({ length: 8 }, (_, i) => [headers(1 + 2 * i, PATH)]));
    await until(() => calls.length === 8);
    offenders.offend("127.0.0.1", 0);
    peer.send([[headers(17, PATH)]]);
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.equal(calls.length, 8);
    assert.deepEqual(offences, ["UNPROVEN"]);
  });

  it("does not limit the streams of a connection with accepted credentials", async (t) => {
    const { connect, calls, guard, offences } = await served(t, { maxUnprovenStreams: 5 });
    const peer = await connect();
    peer.send([[headers(1, PATH)]]);
    await until(() => calls.length === 1);
    guard.prove({ getPeer: () => peer.name() });
    peer.send(Array.from({ length: 20 }, (_, i) => [headers(3 + 2 * i, PATH)]));
    await until(() => calls.length === 21);
    assert.deepEqual(offences, []);
  });

  it("allows a connection with accepted credentials more resets, and closes it beyond that", async (t) => {
    const { connect, calls, guard, offences } = await served(t, { maxUnprovenStreams: 5 });
    const peer = await connect();
    peer.send([[headers(1, PATH)]]);
    await until(() => calls.length === 1);
    guard.prove({ getPeer: () => peer.name() });
    const resets = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => [headers(from + 2 * i, PATH), reset(from + 2 * i)]);
    peer.send(resets(3, 600));
    await until(() => calls.length === 601);
    assert.deepEqual(offences, []);
    peer.send(resets(1_203, 380));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["RESETS"]);
  });

  it("closes a connection that floods it with PING frames", async (t) => {
    const { connect, offences } = await served(t);
    const peer = await connect();
    // nghttp2 itself ends a connection at 1,000 unsent answers, so fewer are sent at once.
    peer.send(Array.from({ length: 400 }, () => [ping()]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["PINGS"]);
  });

  it("closes a connection that floods it with SETTINGS frames", async (t) => {
    const { connect, offences } = await served(t);
    const peer = await connect();
    peer.send(Array.from({ length: 100 }, () => [frame(4, 0, 0, Buffer.alloc(0))]));
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["SETTINGS"]);
  });

  it("closes a connection that floods it with WINDOW_UPDATE frames", async (t) => {
    const { connect, guard, offences } = await served(t);
    const peer = await connect();
    const flood = Array.from({ length: 4_000 }, () => frame(8, 0, 0, Buffer.from([0, 0, 0, 1])));
    await until(() => {
      if (guard.size > 0) peer.send([flood]);
      guard.checkOverhead();
      return offences.length > 0;
    });
    assert.equal(await peer.goAway, ENHANCE_YOUR_CALM);
    assert.deepEqual(offences, ["OVERHEAD"]);
  });

  it("checks connections of addresses that offended before separately from the others", async (t) => {
    const { connect, guard, offences, offenders } = await served(t);
    const first = await connect();
    offenders.offend("127.0.0.1", 0);
    const paced = await connect();
    await until(() => guard.size === 2);
    const flood = Array.from({ length: 40_000 }, () => frame(8, 0, 0, Buffer.from([0, 0, 0, 1])));
    first.send([flood]);
    paced.send([flood]);
    await until(() => {
      guard.checkPacedOverhead();
      return offences.length > 0;
    });
    assert.equal(await paced.goAway, ENHANCE_YOUR_CALM);
    await until(() => guard.size === 1);
    guard.checkPacedOverhead();
    assert.equal(offences.length, 1);
  });

  it("keeps a connection that uploads far more than its budget of overhead", async (t) => {
    const { guard, offences, origin, received } = await served(t);
    const client = connectHttp2(origin);
    t.after(() => client.destroy());
    const stream = client.request({ ":method": "POST", ":path": PATH, "content-type": "application/grpc" });
    stream.on("error", () => {});
    const messages = 16;
    const message = Buffer.alloc(5 + 1024 * 1024);
    message.writeUInt32BE(message.length - 5, 1);
    for (let i = 0; i < messages; i++) stream.write(message);
    await until(() => {
      guard.checkOverhead();
      return received.bytes === messages * (message.length - 5);
    });
    assert.deepEqual(offences, []);
  });

  it("keeps a connection that sends a PING and a WINDOW_UPDATE for each answer", async (t) => {
    const { guard, offences, origin, calls } = await served(t);
    const client = connectHttp2(origin);
    t.after(() => client.destroy());
    const stream = client.request({ ":method": "POST", ":path": PATH, "content-type": "application/grpc" });
    stream.on("error", () => {});
    await until(() => calls.length === 1);
    let answers = 0;
    stream.on("data", () => {
      answers += 1;
      client.ping(() => {});
    });
    for (let i = 1; i <= 300; i++) {
      calls[0]?.write(Buffer.alloc(20));
      await until(() => answers >= i);
      guard.checkOverhead();
    }
    assert.deepEqual(offences, []);
  });
});

describe("a connection that sends nothing", () => {
  const silence = { probeMs: 20_000, answerMs: 10_000 };

  it("is sent a PING and closed if its peer doesn't answer", async (t) => {
    let nowMs = 0;
    const { connect, guard, offences } = await served(t, { silence, monotonicMs: () => nowMs });
    const peer = await connect();
    let [settings, pings] = [0, 0];
    peer.onFrame = (type) => {
      if (type === 4) settings += 1;
      if (type === 6) pings += 1;
    };
    await until(() => settings === 2);
    // The first check notices the peer's preface and settings.
    guard.checkOverhead();
    nowMs = 20_000;
    guard.checkOverhead();
    await until(() => pings === 1);
    for (nowMs of [29_999, 30_000]) guard.checkOverhead();
    assert.equal(guard.size, 1);
    guard.checkOverhead();
    await peer.closed;
    assert.deepEqual([pings, guard.size, offences], [1, 0, []]);
  });

  it("stays open while its peer answers", async (t) => {
    let nowMs = 0;
    const { guard, origin } = await served(t, { silence, monotonicMs: () => nowMs });
    const client = connectHttp2(origin);
    t.after(() => client.destroy());
    let pings = 0;
    client.on("ping", () => {
      pings += 1;
    });
    await until(() => guard.size === 1);
    for (const count of [1, 2, 3]) {
      guard.checkOverhead();
      nowMs += 20_000;
      guard.checkOverhead();
      await until(() => pings === count);
      // The server reads this answer after that to its own PING, which the client sent before.
      await new Promise<void>((resolve) => client.ping(() => resolve()));
    }
    nowMs += 10_000;
    for (let check = 0; check < 3; check++) guard.checkOverhead();
    assert.equal(guard.size, 1);
  });
});

interface Call {
  cancelled: boolean;
  readonly write: (message: Buffer) => void;
}

function closedOf(calls: readonly Call[]): number {
  return calls.filter(({ cancelled }) => cancelled).length;
}

async function served(t: TestContext, options: Partial<SessionGuardOptions> = {}) {
  const server = new Server({ "grpc.max_concurrent_streams": 10_000 });
  const calls: Call[] = [];
  const received = { bytes: 0 };
  const raw = (bytes: Buffer): Buffer => bytes;
  const method = {
    path: PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  } as const;
  server.addService(
    { method },
    {
      method: (call: ServerDuplexStream<Buffer, Buffer>) => {
        const entry = { cancelled: false, write: (message: Buffer) => void call.write(message) };
        calls.push(entry);
        call.on("error", () => {});
        call.on("data", (message: Buffer) => {
          received.bytes += message.length;
        });
        call.on("cancelled", () => {
          entry.cancelled = true;
        });
      },
    },
  );
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const offenders = new Offenders();
  const offences: string[] = [];
  const guard = new SessionGuard(server, {
    offenders,
    monotonicMs: () => 0,
    onOffence: (_address, offence) => offences.push(offence),
    ...options,
  });
  const net = createServer((socket) => {
    socket.on("error", () => {});
    injector.injectConnection(socket);
  });
  await new Promise<void>((resolve) => net.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    net.close();
    server.forceShutdown();
  });
  const connect = async (): Promise<RawPeer> => {
    const socket = connectTcp((net.address() as AddressInfo).port, "127.0.0.1");
    t.after(() => socket.destroy());
    await once(socket, "connect");
    return new RawPeer(socket);
  };
  const origin = `http://127.0.0.1:${(net.address() as AddressInfo).port}`;
  return { connect, calls, received, guard, offences, offenders, origin };
}

/** A client that writes arbitrary frames. */
class RawPeer {
  readonly #socket: Socket;
  readonly closed: Promise<unknown>;
  /** The error code of the server's first GOAWAY. */
  readonly goAway: Promise<number>;
  onFrame = (_type: number): void => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    this.goAway = new Promise((resolve) => {
      let pending: Buffer = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        pending = Buffer.concat([pending, chunk]);
        while (pending.length >= 9 && pending.length >= 9 + pending.readUIntBE(0, 3)) {
          const end = 9 + pending.readUIntBE(0, 3);
          if (pending[3] === 7) resolve(pending.readUInt32BE(13));
          this.onFrame(pending[3] ?? 0);
          pending = pending.subarray(end);
        }
      });
    });
    this.send([[Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, Buffer.alloc(0))]]);
  }

  /** Returns the offence's name as the server reports it. */
  name(): string {
    return `${this.#socket.localAddress}:${this.#socket.localPort}`;
  }

  send(frames: readonly (readonly Buffer[])[]): void {
    this.#socket.write(Buffer.concat(frames.flat()));
  }
}

function headers(id: number, to: string): Buffer {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": to,
    ":authority": "test",
    "content-type": "application/grpc",
  };
  const literal = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
  const block = Object.entries(fields).map(([name, value]) =>
    Buffer.concat([Buffer.from([0]), literal(name), literal(value)]),
  );
  return frame(1, 4, id, Buffer.concat(block));
}

function ping(): Buffer {
  return frame(6, 0, 0, Buffer.alloc(8));
}

function reset(id: number): Buffer {
  return frame(3, 0, id, Buffer.from([0, 0, 0, 8]));
}

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (!condition()) {
    assert.ok(performance.now() < deadlineMs, "the condition did not come true within 20 s");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
