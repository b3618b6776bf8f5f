import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { VirtualClock } from "@forage/common/virtual-clock";
import { DestinationService, GetDestination } from "@forage/proto/destination";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { pino } from "pino";
import { aCertificate } from "../../../test/support/gateway/a-certificate.ts";
import { until } from "../../../test/support/until.ts";
import { CoordinatorError } from "../../errors.ts";
import { PREFACE } from "../../http2/frames.ts";
import type { Sink } from "../push.ts";
import { PushServer, type PushServerOptions } from "./push-server.ts";
import { pushedMethod } from "./pushed-method.ts";

const LIMIT = { timeout: 180_000 };
const { get } = DestinationService;
const REQUEST = GetDestination.fromPartial({ path: "web:80" });

interface OpenCall {
  readonly request: GetDestination;
  readonly sink: Sink<Buffer>;
  isStopped: boolean;
}

async function started(t: TestContext, options: Partial<PushServerOptions> = {}, tls = false) {
  const clock = new VirtualClock();
  const calls: OpenCall[] = [];
  const codes: number[] = [];
  const failures: string[] = [];
  const method = pushedMethod(
    { path: get.path, requestDeserialize: get.requestDeserialize },
    {
      push: (request, _context, sink) => {
        if (request.path === "bad") throw new CoordinatorError("INVALID", 'the path "bad" ist schlecht ✗');
        const call = { request, sink, isStopped: false };
        calls.push(call);
        return () => {
          call.isStopped = true;
        };
      },
    },
  );
  const server = new PushServer([method], {
    caller: { type: "user", name: "test", grants: [{ role: "destination-reader", namespaces: "*" }] },
    log: pino({ level: "silent" }),
    observe: (_method, code) => codes.push(code),
    monotonicMs: clock.monotonicMs,
    schedule: clock.schedule,
    maxCalls: 100,
    maxCallsPerConnection: 10,
    maxStreams: 20,
    firstMessageMs: 60_000,
    onFailure: (_address, { reason }) => failures.push(reason),
    onStalled: () => failures.push("STALLED"),
    ...options,
  });
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    server.accept(socket, { address: "127.0.0.1", port: socket.remotePort ?? 0, isPaced: false });
  };
  const pair = tls ? await aCertificate("localhost") : undefined;
  const listener =
    pair === undefined
      ? createServer({ pauseOnConnect: true }, accept)
      : createTlsServer(
          { cert: pair["tls.crt"], key: pair["tls.key"], ALPNProtocols: ["h2"] },
          (socket: TLSSocket) => accept(socket),
        );
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  return { clock, calls, codes, failures, server, port };
}

function clientOf(t: TestContext, port: number): Client {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => client.close());
  return client;
}

function callOf(client: Client, request = REQUEST, deadlineMs?: number) {
  const messages: string[] = [];
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const call = client.makeServerStreamRequest(
    get.path,
    get.requestSerialize,
    (bytes: Buffer) => bytes.toString(),
    request,
    new Metadata(),
    options,
  );
  call.on("data", (message: string) => messages.push(message)).on("error", () => {});
  const ended = new Promise<{ code: number; details: string }>((resolve) => call.once("status", resolve));
  return { call, messages, ended };
}

function sessionTo(t: TestContext, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  t.after(() => session.destroy());
  return session;
}

function requestOf(session: ClientHttp2Session, fields: Record<string, string> = {}): ClientHttp2Stream {
  const call = session.request({
    ":method": "POST",
    ":path": get.path,
    "content-type": "application/grpc",
    te: "trailers",
    ...fields,
  });
  call.on("error", () => {});
  return call;
}

async function endOf(call: ClientHttp2Stream): Promise<IncomingHttpHeaders> {
  const [headers] = (await once(call, "response")) as [IncomingHttpHeaders];
  call.resume();
  return headers;
}

function framed(bytes: Uint8Array, isCompressed = false): Buffer {
  const prefix = Buffer.from([isCompressed ? 1 : 0, 0, 0, 0, 0]);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

test("delivers the messages of a call in order, and ends the call with its status", LIMIT, async (t) => {
  const { calls, codes, port } = await started(t);
  const { messages, ended } = callOf(clientOf(t, port));
  await until("it has arrived", () => calls.length === 1);
  assert.equal(calls[0]?.request.path, "web:80");
  const send = (text: string): Promise<void> =>
    new Promise((resolve) => calls[0]?.sink.send(Buffer.from(text), resolve));
  await send("one");
  await send("x".repeat(100_000));
  await send("three");
  await until("all have come", () => messages.length === 3);
  assert.deepEqual(
    messages.map((message) => message.slice(0, 5)),
    ["one", "xxxxx", "three"],
  );
  calls[0]?.sink.fail(new CoordinatorError("NOT_FOUND", "gone"));
  assert.deepEqual(await ended.then(({ code, details }) => [code, details]), [status.NOT_FOUND, "gone"]);
  assert.deepEqual([calls[0]?.isStopped, codes], [true, [status.NOT_FOUND]]);
});

test("sends the reason of a refusal, even with non-ASCII characters", LIMIT, async (t) => {
  const { port } = await started(t);
  const { ended } = callOf(clientOf(t, port), GetDestination.fromPartial({ path: "bad" }));
  const { code, details } = await ended;
  assert.deepEqual([code, details], [status.INVALID_ARGUMENT, 'the path "bad" ist schlecht ✗']);
});

test("stops a call that its client cancels", LIMIT, async (t) => {
  const { calls, server, port } = await started(t);
  const { call } = callOf(clientOf(t, port));
  await until("it has arrived", () => calls.length === 1);
  call.cancel();
  await until("it is stopped", () => calls[0]?.isStopped === true && server.openCalls === 0);
});

test("ends a call with its connection", LIMIT, async (t) => {
  const { calls, server, port } = await started(t);
  const session = sessionTo(t, port);
  requestOf(session).end(framed(GetDestination.encode(REQUEST).finish()));
  await until("it has arrived", () => calls.length === 1);
  session.destroy();
  await until("it is stopped", () => calls[0]?.isStopped === true && server.connections === 0);
});

test("ends a call at its deadline", LIMIT, async (t) => {
  const { calls, clock, port } = await started(t);
  const call = requestOf(sessionTo(t, port), { "grpc-timeout": "1500m" });
  call.end(framed(GetDestination.encode(REQUEST).finish()));
  await until("it has arrived", () => calls.length === 1);
  clock.advance(1_499);
  assert.equal(calls[0]?.isStopped, false);
  clock.advance(1);
  assert.equal((await endOf(call))["grpc-status"], String(status.DEADLINE_EXCEEDED));
  assert.equal(calls[0]?.isStopped, true);
});

for (const [what, fields, body, expected] of [
  [
    "a deadline that is no time",
    { "grpc-timeout": "soon" },
    framed(Buffer.alloc(0)),
    status.INVALID_ARGUMENT,
  ],
  ["a compressed request", {}, framed(Buffer.alloc(3), true), status.UNIMPLEMENTED],
  [
    "a request of more than 64 KiB",
    {},
    framed(Buffer.alloc(65_531)).subarray(0, 20),
    status.RESOURCE_EXHAUSTED,
  ],
  ["an incomplete request", {}, framed(Buffer.alloc(9)).subarray(0, 8), status.INVALID_ARGUMENT],
  [
    "two requests",
    {},
    Buffer.concat([framed(Buffer.alloc(0)), framed(Buffer.alloc(0))]),
    status.INVALID_ARGUMENT,
  ],
  ["an invalid message", {}, framed(Buffer.from([0xff])), status.INVALID_ARGUMENT],
  ["an unknown method", { ":path": "/a.B/C" }, framed(Buffer.alloc(0)), status.UNIMPLEMENTED],
] as const)
  test(`refuses ${what}`, LIMIT, async (t) => {
    const { port, server } = await started(t);
    const call = requestOf(sessionTo(t, port), fields);
    call.end(body);
    assert.equal((await endOf(call))["grpc-status"], String(expected));
    await until("nothing is left of it", () => server.openCalls === 0);
  });

test("accepts consecutive requests of the largest allowed size", LIMIT, async (t) => {
  const { calls, port } = await started(t);
  const session = sessionTo(t, port);
  const path = "p".repeat(65_526);
  for (const count of [1, 2, 3]) {
    const call = requestOf(session);
    call.end(framed(GetDestination.encode(GetDestination.fromPartial({ path })).finish()));
    await until("it has arrived", () => calls.length === count);
  }
  assert.equal(calls[2]?.request.path.length, path.length);
});

test("refuses requests that are not gRPC calls with an HTTP status", LIMIT, async (t) => {
  const { port } = await started(t);
  const session = sessionTo(t, port);
  for (const [fields, expected] of [
    [{ ":method": "GET" }, 405],
    [{ "content-type": "text/plain" }, 415],
  ] as const) {
    const call = requestOf(session, fields);
    call.end();
    assert.equal((await endOf(call))[":status"], expected);
  }
});

test("refuses calls beyond the limits of a connection and of the server", LIMIT, async (t) => {
  const { calls, port } = await started(t, { maxCalls: 5, maxCallsPerConnection: 3 });
  const [first, second] = [sessionTo(t, port), sessionTo(t, port)];
  const body = framed(GetDestination.encode(REQUEST).finish());
  const open = (session: ClientHttp2Session): ClientHttp2Stream => requestOf(session).end(body);
  for (let index = 0; index < 3; index++) open(first);
  await until("they have arrived", () => calls.length === 3);
  assert.equal((await endOf(open(first)))["grpc-status"], String(status.RESOURCE_EXHAUSTED));
  for (let index = 0; index < 2; index++) open(second);
  await until("they have arrived", () => calls.length === 5);
  assert.equal((await endOf(open(second)))["grpc-status"], String(status.RESOURCE_EXHAUSTED));
  first.destroy();
  await until("there is room again", () => calls[0]?.isStopped === true);
  open(second);
  await until("it has arrived", () => calls.length === 6);
});

test("ends a call whose request stays incomplete", LIMIT, async (t) => {
  const { clock, port, server } = await started(t, { firstMessageMs: 10_000 });
  const call = requestOf(sessionTo(t, port));
  call.write(Buffer.from([0, 0]));
  await until("it has arrived", () => server.openCalls === 1);
  clock.advance(9_999);
  assert.equal(server.openCalls, 1);
  clock.advance(1);
  assert.equal((await endOf(call))["grpc-status"], String(status.DEADLINE_EXCEEDED));
});

test("closes connections that never start, and those that no longer answer", LIMIT, async (t) => {
  const { clock, failures, port, server } = await started(t);
  const silent = connectTcp(port, "127.0.0.1")
    .on("error", () => {})
    .resume();
  await until("it is there", () => server.connections === 1);
  clock.advance(10_000);
  assert.deepEqual(failures, ["HANDSHAKE"]);
  clock.advance(100);
  await once(silent, "close");
  const dead = connectTcp(port, "127.0.0.1").on("error", () => {});
  dead.write(Buffer.concat([PREFACE, Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])]));
  // The server's settings, and its acknowledgement of the client's.
  let received = 0;
  dead.on("data", (bytes: Buffer) => {
    received += bytes.length;
  });
  await until("it has begun", () => received >= 30);
  clock.advance(25_000);
  await until("it was sent a PING", () => received >= 47);
  clock.advance(15_000);
  assert.deepEqual(failures, ["HANDSHAKE", "KEEPALIVE"]);
  clock.advance(100);
  await until("it is gone", () => server.connections === 0);
});

test("keeps an idle connection whose peer answers", LIMIT, async (t) => {
  const { clock, calls, failures, port, server } = await started(t);
  const session = sessionTo(t, port);
  requestOf(session).end(framed(GetDestination.encode(REQUEST).finish()));
  await until("it has arrived", () => calls.length === 1);
  let pings = 0;
  session.on("ping", () => {
    pings++;
  });
  for (const count of [1, 2, 3]) {
    clock.advance(25_000);
    await until("it was asked", () => pings >= count);
    // The answer to this refused call arrives after the answer to the PING, which was sent before.
    const probe = requestOf(session, { ":method": "GET" });
    probe.end();
    await endOf(probe);
  }
  assert.deepEqual([failures, server.connections], [[], 1]);
});

test("ends calls with OK when it closes, and waits for their clients", LIMIT, async (t) => {
  const { calls, port, server } = await started(t);
  const { ended, messages } = callOf(clientOf(t, port));
  await until("it has arrived", () => calls.length === 1);
  calls[0]?.sink.send(Buffer.from("one"), () => {});
  await until("it has come", () => messages.length === 1);
  await server.close(30_000);
  assert.equal((await ended).code, status.OK);
  assert.equal(server.connections, 0);
});

test("closes at once if there are no connections", LIMIT, async (t) => {
  const { server } = await started(t);
  // The virtual clock stands still, so the grace period never ends.
  await server.close(30_000);
});

test("serves TLS connections that negotiated HTTP/2", LIMIT, async (t) => {
  const { calls, port } = await started(t, {}, true);
  const socket = connectTls({ port, host: "127.0.0.1", ALPNProtocols: ["h2"], rejectUnauthorized: false });
  t.after(() => socket.destroy());
  await once(socket, "secureConnect");
  assert.equal(socket.alpnProtocol, "h2");
  const session = connect(`https://127.0.0.1:${port}`, { createConnection: () => socket });
  session.on("error", () => {});
  t.after(() => session.destroy());
  const call = requestOf(session);
  call.end(framed(GetDestination.encode(REQUEST).finish()));
  await until("it has arrived", () => calls.length === 1);
  calls[0]?.sink.send(Buffer.from("over TLS"), () => {});
  const [bytes] = (await once(call, "data")) as [Buffer];
  assert.equal(bytes.subarray(5).toString(), "over TLS");
});
