import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { nodeId } from "@forage/identity/node-id";
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type StatusObject,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { until } from "../../../test/support/until.ts";
import { Admission, type CallLimits } from "../admission.ts";
import type { Caller } from "../caller.ts";
import { serverOptions } from "../server-options.ts";
import { NodeServer } from "./node-server.ts";
import { SharedServer } from "./served-methods.ts";

const LIMIT = { timeout: 180_000 };
const NODE: Caller = { type: "node", nodeId: nodeId("a1"), serial: "01" };
type Bytes = ServerDuplexStream<Buffer, Buffer>;

interface Handlers {
  readonly unary?: (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => void;
  readonly upload?: (call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => void;
  readonly watch?: (call: ServerWritableStream<Buffer, Buffer>) => void;
  readonly connect?: (call: Bytes) => void;
}

interface Options {
  readonly limits?: Partial<CallLimits>;
  readonly caller?: Caller;
}

async function started(t: TestContext, handlers: Handlers, { limits = {}, caller = NODE }: Options = {}) {
  const clock = new VirtualClock();
  const refused: number[] = [];
  const failures: string[] = [];
  const admission = new Admission({
    identify: () => caller,
    schedule: clock.schedule,
    limits,
    onRefused: (_method, _peer, code) => refused.push(code),
  });
  const methods = new SharedServer(serverOptions(100));
  const definitions = Object.keys(handlers).map((name) => [name, methodOf(name)] as const);
  methods.addService(Object.fromEntries(definitions), { ...handlers });
  const server = new NodeServer({
    ...{ methods, admission, nowMs: clock.nowMs, monotonicMs: clock.monotonicMs },
    schedule: clock.schedule,
    onFailure: (_peer, { reason }) => failures.push(reason),
  });
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    server.accept(socket, { getPeer: () => "127.0.0.1:1", getAuthContext: () => ({}) });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  return { clock, client, port, server, admission, refused, failures, sockets, definitions, methods };
}

function methodOf(name: string) {
  const [requestStream, responseStream] = {
    unary: [false, false],
    upload: [true, false],
    watch: [false, true],
    connect: [true, true],
  }[name] as [boolean, boolean];
  const asIs = (bytes: Buffer): Buffer => bytes;
  const codecs = {
    requestSerialize: asIs,
    requestDeserialize: (bytes: Buffer): Buffer => {
      if (bytes.toString() === "bad") throw new Error("it is bad");
      return bytes;
    },
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  return { path: `/test/${name}`, requestStream, responseStream, ...codecs };
}

const asIs = (bytes: Buffer): Buffer => bytes;

function connectOf(client: Client, metadata = new Metadata(), deadlineMs?: number) {
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const call = client.makeBidiStreamRequest("/test/connect", asIs, asIs, metadata, options);
  return { call, ...endOf(call) };
}

function endOf(call: ClientDuplexStream<Buffer, Buffer>) {
  const messages: string[] = [];
  call.on("data", (message: Buffer) => messages.push(message.toString())).on("error", () => {});
  const ended = new Promise<StatusObject>((resolve) => call.once("status", resolve));
  return { messages, ended };
}

function unaryOf(client: Client, request: string): Promise<string | number> {
  return new Promise((resolve) =>
    client.makeUnaryRequest("/test/unary", asIs, asIs, Buffer.from(request), (error, answer) =>
      resolve(error === null ? String(answer) : error.code),
    ),
  );
}

test("serves all four kinds of methods", LIMIT, async (t) => {
  const { client } = await started(t, {
    unary: (call, answer) => answer(null, Buffer.from(`unary ${call.request}`)),
    upload: (call, answer) => {
      let bytes = 0;
      call.on("data", (part: Buffer) => {
        bytes += part.length;
      });
      call.on("end", () => answer(null, Buffer.from(`${bytes} bytes`)));
    },
    watch: (call) => {
      for (const part of ["a", "b"]) call.write(Buffer.from(`${call.request} ${part}`));
      call.end();
    },
    connect: (call) => {
      call.on("data", (message: Buffer) => call.write(Buffer.from(`echo ${message}`)));
      call.on("end", () => call.end());
    },
  });
  assert.equal(await unaryOf(client, "one"), "unary one");
  const uploaded = await new Promise((resolve) => {
    const call = client.makeClientStreamRequest("/test/upload", asIs, asIs, (_error, answer) =>
      resolve(String(answer)),
    );
    // Larger than the window of HTTP/2, in one message and in several.
    for (const size of [1_000_000, 70_000, 70_000, 0]) call.write(Buffer.alloc(size));
    call.end();
  });
  assert.equal(uploaded, "1140000 bytes");
  const watch = endOf(client.makeServerStreamRequest("/test/watch", asIs, asIs, Buffer.from("w")) as never);
  assert.equal((await watch.ended).code, status.OK);
  assert.deepEqual(watch.messages, ["w a", "w b"]);
  const { call, messages, ended } = connectOf(client);
  call.write(Buffer.from("one"));
  await until("it is answered", () => messages.length === 1);
  call.write(Buffer.from("two"));
  call.end();
  assert.equal((await ended).code, status.OK);
  assert.deepEqual(messages, ["echo one", "echo two"]);
});

test("ends a call with the status, the text and the trailers of its error", LIMIT, async (t) => {
  const { client } = await started(t, {
    connect: (call) => {
      const metadata = new Metadata();
      metadata.set("forage-reason", "test");
      call.write(Buffer.from("first"));
      const error = { code: status.ABORTED, details: "ünlucky", metadata, message: "", name: "" };
      call.emit("error", error satisfies ServiceError);
    },
  });
  const { ended, messages } = connectOf(client);
  const { code, details, metadata } = await ended;
  assert.deepEqual([code, details, metadata.get("forage-reason")], [status.ABORTED, "ünlucky", ["test"]]);
  assert.deepEqual(messages, ["first"]);
});

test("gives a handler the metadata of its call, and the client that of the response", LIMIT, async (t) => {
  const { client } = await started(t, {
    connect: (call) => {
      const response = new Metadata();
      response.set("x-answer", String(call.metadata.get("x-question")[0]));
      response.set("x-bytes-bin", call.metadata.get("x-bytes-bin")[0] ?? "");
      call.sendMetadata(response);
      call.end();
    },
  });
  const metadata = new Metadata();
  metadata.set("x-question", "why");
  metadata.set("x-bytes-bin", Buffer.from([0, 255]));
  const { call, ended } = connectOf(client, metadata);
  const [received] = (await once(call, "metadata")) as [Metadata];
  assert.deepEqual(received.get("x-answer"), ["why"]);
  assert.deepEqual(received.get("x-bytes-bin"), [Buffer.from([0, 255])]);
  assert.equal((await ended).code, status.OK);
});

test("stops a client whose requests the handler does not read", LIMIT, async (t) => {
  let served: Bytes | undefined;
  const { port, sockets } = await started(t, {
    connect: (call) => {
      served = call;
    },
  });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const headers = { ":method": "POST", ":path": "/test/connect", "content-type": "application/grpc" };
  const call = session.request(headers);
  const message = Buffer.alloc(10_005);
  message.writeUInt32BE(10_000, 1);
  for (let part = 0; part < 400; part++) call.write(message);
  await until("the handler's buffer is full", () => (served?.readableLength ?? 0) >= 16);
  // All that the client may send arrives before the answers.
  for (let ping = 0; ping < 2; ping++) await new Promise((resolve) => session.ping(resolve));
  const received = [...sockets][0]?.bytesRead ?? 0;
  assert.ok(received < 300_000, `${received} bytes were received`);
  let read = 0;
  served?.on("data", () => read++);
  await until("all arrive once the handler reads", () => read === 400);
});

test("pauses a handler while its client does not read", LIMIT, async (t) => {
  let served: Bytes | undefined;
  const { client } = await started(t, {
    connect: (call) => {
      served = call;
    },
  });
  const { call } = connectOf(client);
  call.pause();
  await until("it is served", () => served !== undefined);
  let accepted = 0;
  while (served?.write(Buffer.alloc(10_000)) && accepted < 1_000) accepted++;
  assert.ok(accepted < 1_000);
});

test("cancels a call that its client cancels, and those of a closed connection", LIMIT, async (t) => {
  const cancelled: string[] = [];
  const { admission, client, sockets } = await started(t, {
    connect: (call) => call.on("cancelled", () => cancelled.push(String(call.metadata.get("name")[0]))),
  });
  const named = (name: string) => {
    const metadata = new Metadata();
    metadata.set("name", name);
    return connectOf(client, metadata);
  };
  const first = named("first");
  const second = named("second");
  await until("both are served", () => admission.openCalls === 2);
  first.call.cancel();
  await until("it is cancelled", () => cancelled.length === 1);
  for (const socket of sockets) socket.destroy();
  assert.equal((await second.ended).code, status.UNAVAILABLE);
  await until("it is cancelled too", () => cancelled.length === 2);
  assert.deepEqual(cancelled, ["first", "second"]);
  assert.deepEqual([admission.openCalls, admission.clients], [0, 0]);
});

test("ends a call at its deadline", LIMIT, async (t) => {
  const received: string[] = [];
  const connect = (call: Bytes): void => void call.on("data", (part: Buffer) => received.push(`${part}`));
  const { client, clock } = await started(t, { connect });
  const { call, ended } = connectOf(client, new Metadata(), 15_000);
  call.write(Buffer.from("a"));
  await until("its first message is read", () => received.length === 1);
  clock.advance(15_000);
  // The client ends it with another text if the server does not.
  const { code, details } = await ended;
  assert.deepEqual([code, details], [status.DEADLINE_EXCEEDED, "the deadline of the call has passed"]);
});

test("ends a call without a first message in time", LIMIT, async (t) => {
  const { client, clock, admission, refused } = await started(
    t,
    { connect: () => {} },
    { limits: { firstMessageMs: 10_000 } },
  );
  const { ended } = connectOf(client);
  await until("it is served", () => admission.openCalls === 1);
  clock.advance(10_000);
  assert.equal((await ended).code, status.DEADLINE_EXCEEDED);
  assert.deepEqual(refused, [status.DEADLINE_EXCEEDED]);
});

test("keeps a call whose first message arrived", LIMIT, async (t) => {
  const echo = (call: Bytes): void => void call.on("data", (message: Buffer) => call.write(message));
  const limits = { firstMessageMs: 10_000 };
  const { client, clock, admission } = await started(t, { connect: echo }, { limits });
  const { call, messages } = connectOf(client);
  call.write(Buffer.from("one"));
  await until("it is answered", () => messages.length === 1);
  clock.advance(10_000);
  call.write(Buffer.from("two"));
  await until("it is answered", () => messages.length === 2);
  assert.equal(admission.openCalls, 1);
});

for (const [what, request, expected] of [
  ["a request that can't be decoded", "bad", status.INTERNAL],
  ["a request of more than 4 MiB", "x".repeat(4 * 1024 * 1024 + 1), status.RESOURCE_EXHAUSTED],
] as const)
  test(`refuses ${what}`, LIMIT, async (t) => {
    const { client } = await started(t, { unary: (_call, answer) => answer(null, Buffer.from("served")) });
    assert.equal(await unaryOf(client, request), expected);
    assert.equal(await unaryOf(client, "good"), "served");
  });

test("refuses calls beyond the limit of a client", LIMIT, async (t) => {
  const { client, refused, admission } = await started(
    t,
    { connect: () => {}, unary: (_call, answer) => answer(null, Buffer.from("served")) },
    { limits: { maxCallsPerClient: 1 } },
  );
  const { call } = connectOf(client);
  await until("it is served", () => admission.openCalls === 1);
  assert.equal(await unaryOf(client, "one"), status.RESOURCE_EXHAUSTED);
  assert.deepEqual(refused, [status.RESOURCE_EXHAUSTED]);
  call.cancel();
  await until("there is room", () => admission.openCalls === 0);
  assert.equal(await unaryOf(client, "one"), "served");
});

test("refuses a caller whose certificate is no longer accepted", LIMIT, async (t) => {
  const { client } = await started(
    t,
    { unary: (_call, answer) => answer(null, Buffer.from("served")) },
    { caller: { type: "anonymous", problem: "it was revoked" } },
  );
  assert.equal(await unaryOf(client, "one"), status.PERMISSION_DENIED);
});

test("serves only methods of services that were not removed", LIMIT, async (t) => {
  const { client, methods, definitions } = await started(t, {
    unary: (_call, answer) => answer(null, Buffer.from("served")),
  });
  assert.equal(await unaryOf(client, "one"), "served");
  methods.removeService(Object.fromEntries(definitions));
  assert.equal(await unaryOf(client, "one"), status.UNIMPLEMENTED);
});

test("closes a connection after its last call once it was asked to leave", LIMIT, async (t) => {
  let served: Bytes | undefined;
  const { client, server } = await started(t, {
    connect: (call) => {
      served = call;
    },
  });
  const { ended } = connectOf(client);
  await until("it is served", () => served !== undefined);
  server.leave();
  assert.equal(server.connections, 1);
  served?.end();
  assert.equal((await ended).code, status.OK);
  await until("it is closed", () => server.connections === 0);
});

test("closes a connection whose peer no longer answers", LIMIT, async (t) => {
  const { client, clock, failures, sockets, admission } = await started(t, { connect: () => {} });
  connectOf(client).call.write(Buffer.from("one"));
  await until("it is served", () => admission.openCalls === 1);
  for (const socket of sockets) socket.pause();
  clock.advance(20_000);
  clock.advance(10_000);
  assert.deepEqual(failures, ["KEEPALIVE"]);
});
