import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Client, credentials, Metadata, Server, ServerCredentials } from "@grpc/grpc-js";
import { pino } from "pino";
import { Admission } from "./admission.ts";
import { directWriter, Framer } from "./direct-writer.ts";
import type { FramesHandler } from "./frames.ts";
import type { PushHandler } from "./push.ts";
import { serve } from "./serve.ts";

const LIMIT = { timeout: 180_000 };
/** A method that callers of the test may call; other methods are refused. */
const PATH = "/io.linkerd.proxy.destination.Destination/Get";

test("frames bytes only once for several streams in a row", () => {
  const framer = new Framer();
  const [first, second] = [Buffer.from("first"), Buffer.from("second")];
  const framed = framer.framed(first);
  assert.deepEqual(framed, Buffer.concat([Buffer.from([0, 0, 0, 0, 5]), first]));
  assert.equal(framer.framed(first), framed);
  assert.deepEqual(framer.framed(second), Buffer.concat([Buffer.from([0, 0, 0, 0, 6]), second]));
  assert.deepEqual(framed.subarray(5), first);
});

test("ignores messages for a closed stream", LIMIT, async (t) => {
  const stream = await anHttp2Stream(t);
  let headers = 0;
  const call = { sendMetadata: () => (headers += 1) };
  const write = directWriter(call, stream, new Framer());
  const closed = once(stream, "close");
  stream.close();
  await closed;
  write(Buffer.from("late"), () => assert.fail("it was accepted"));
  assert.equal(headers, 0);
});

test("delivers pushed messages, the status and an error to a gRPC client", LIMIT, async (t) => {
  const { client, sinks } = await pushing(t);
  const [ended, failed] = [read(client), read(client)];
  while (sinks.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const [first, second] = sinks;
  for (const text of ["one", "", "three"])
    await new Promise<void>((onAccepted) => first?.send(Buffer.from(text), onAccepted));
  first?.fail(undefined);
  await new Promise<void>((onAccepted) => second?.send(Buffer.from("only"), onAccepted));
  second?.fail(Object.assign(new Error("no more"), { code: "NOT_FOUND" }));
  assert.deepEqual(await ended, { messages: ["one", "", "three"], code: 0 });
  const { messages, code } = await failed;
  assert.deepEqual(messages, ["only"]);
  assert.notEqual(code, 0);
});

test("finds the stream by the metadata that grpc-js passes to handlers", LIMIT, async (t) => {
  const { client, streams, sinks } = await pushing(t);
  const answer = read(client);
  while (sinks.length < 1) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(streams, [true]);
  sinks[0]?.fail(undefined);
  await answer;
});

test("delivers the encoded messages, the end and the error of a generator", LIMIT, async (t) => {
  const { client } = await serving(t, {
    frames: async function* (request) {
      for (const text of ["one", "", "x".repeat(200_000)]) yield Buffer.from(text);
      if (request.length > 0) throw Object.assign(new Error("no more"), { code: "NOT_FOUND" });
    },
  });
  const { messages, code } = await read(client);
  assert.deepEqual([messages.map(({ length }) => length), code], [[3, 0, 200_000], 0]);
  assert.notEqual((await read(client, Buffer.alloc(1))).code, 0);
});

test("ends a generator of encoded messages when its client disconnects without reading", LIMIT, async (t) => {
  let sent = 0;
  const ended = Promise.withResolvers<void>();
  const message = Buffer.alloc(60_000);
  const { port } = await serving(t, {
    frames: async function* () {
      try {
        for (; ; sent++) yield message;
      } finally {
        ended.resolve();
      }
    },
  });
  // A grpc-js client accepts messages even while its call is paused.
  const session = connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const headers = { ":method": "POST", ":path": PATH, "content-type": "application/grpc", te: "trailers" };
  const call = session.request(headers).pause();
  call.on("error", () => undefined).end(Buffer.alloc(5));
  // Waits until flow control stops the sender.
  for (let before = -1; sent === 0 || sent > before; ) {
    before = sent;
    for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  call.close(constants.NGHTTP2_CANCEL);
  await ended.promise;
});

interface HeldSink {
  send(bytes: Buffer, onAccepted: () => void): void;
  fail(error: unknown): void;
}

async function pushing(t: TestContext) {
  const sinks: HeldSink[] = [];
  const push = (_request: Buffer, _context: unknown, sink: HeldSink) => {
    sinks.push(sink);
    return () => undefined;
  };
  return { ...(await serving(t, { push })), sinks };
}

async function serving(t: TestContext, watch: PushHandler<Buffer, Buffer> | FramesHandler<Buffer>) {
  const raw = (bytes: Buffer): Buffer => bytes;
  const method = {
    path: PATH,
    requestStream: false,
    responseStream: true,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  } as const;
  const identify = () => ({ type: "user", name: "a", grants: [{ role: "admin", namespaces: "*" }] }) as const;
  const admission = new Admission({ identify, schedule: () => () => undefined });
  const streams: boolean[] = [];
  const streamOf = (metadata: Metadata) => {
    const stream = admission.streamOf(metadata);
    streams.push(stream !== undefined);
    return stream;
  };
  const server = new Server({ interceptors: [admission.interceptor] });
  serve(
    server,
    { watch: method },
    { watch },
    {
      identify,
      log: pino({ level: "silent" }),
      stopping: new AbortController().signal,
      monotonicMs: () => 0,
      streamOf,
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  return { client, port, streams };
}

function read(
  client: Client,
  request: Buffer = Buffer.alloc(0),
): Promise<{ readonly messages: readonly string[]; readonly code: number }> {
  const raw = (bytes: Buffer): Buffer => bytes;
  const call = client.makeServerStreamRequest(PATH, raw, raw, request, new Metadata());
  const messages: string[] = [];
  call.on("data", (bytes: Buffer) => messages.push(bytes.toString()));
  call.on("error", () => undefined);
  return new Promise((resolve) => call.on("status", ({ code }) => resolve({ messages, code })));
}

async function anHttp2Stream(t: TestContext): Promise<ServerHttp2Stream> {
  const server: Http2Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.after(() => {
    session.destroy();
    server.close();
  });
  const opened = once(server, "stream");
  session.request().on("error", () => undefined);
  const [stream] = (await opened) as [ServerHttp2Stream];
  return stream;
}
