import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { DestinationService } from "@forage/proto/destination";
import { Server, ServerCredentials, type ServerWritableStream, status } from "@grpc/grpc-js";
import { CallLimits, type CallLimitsOptions } from "./call-limits.ts";

const LIMIT = { timeout: 180_000 };

test("limits the calls of an address over all its connections", LIMIT, async (t) => {
  const { connectAgain, limits, handled } = await served(t, { maxCallsPerAddress: 3 });
  const [first, second] = [await connectAgain(), await connectAgain()];
  const held = [open(first), open(first), open(second)];
  await until(() => limits.openCalls === 3);
  assert.equal(await codeOf(open(second)), status.RESOURCE_EXHAUSTED);
  held[0]?.close(constants.NGHTTP2_CANCEL);
  await until(() => limits.openCalls === 2);
  open(first).end(Buffer.alloc(5));
  await until(() => handled() === 1);
  assert.equal(limits.openCalls, 3);
});

test("limits the calls of all addresses", LIMIT, async (t) => {
  const { connectAgain, limits } = await served(t, { maxCalls: 2 });
  const session = await connectAgain();
  open(session);
  open(session);
  assert.equal(await codeOf(open(session)), status.RESOURCE_EXHAUSTED);
  session.destroy();
  await until(() => limits.openCalls === 0);
});

test("resets a call whose request is not complete in time, but no other call", LIMIT, async (t) => {
  const { connectAgain, limits, handled, timers } = await served(t, {});
  const session = await connectAgain();
  open(session).end(Buffer.alloc(5));
  await until(() => handled() === 1);
  const half = open(session);
  half.write(Buffer.alloc(3));
  const notEnded = open(session);
  notEnded.write(Buffer.alloc(5));
  const codes = [half, notEnded].map(codeOf);
  await until(() => limits.openCalls === 3);
  for (const run of [...timers]) run();
  assert.deepEqual(await Promise.all(codes), [status.DEADLINE_EXCEEDED, status.DEADLINE_EXCEEDED]);
  await until(() => limits.openCalls === 1);
  session.destroy();
  await until(() => limits.openCalls === 0);
  assert.equal(timers.size, 0);
});

async function served(t: TestContext, options: Partial<CallLimitsOptions>) {
  const timers = new Set<() => void>();
  const schedule = (_delayMs: number, run: () => void): (() => void) => {
    timers.add(run);
    return () => timers.delete(run);
  };
  const given = {
    clock: { schedule },
    maxCalls: 100,
    maxCallsPerAddress: 100,
    firstMessageMs: 5_000,
    ...options,
  };
  const limits = new CallLimits(given);
  const server = new Server({ interceptors: [limits.interceptor] });
  let handled = 0;
  const handler = (call: ServerWritableStream<unknown, unknown>): void => {
    handled += 1;
    call.on("error", () => {});
  };
  server.addService(DestinationService, { get: handler, getProfile: handler });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const net = createServer((socket) => injector.injectConnection(socket)).listen(0, "127.0.0.1");
  await once(net, "listening");
  const sessions: ClientHttp2Session[] = [];
  t.after(() => {
    for (const session of sessions) session.destroy();
    server.forceShutdown();
    net.close();
  });
  const connectAgain = async (): Promise<ClientHttp2Session> => {
    const session = connect(`http://127.0.0.1:${(net.address() as AddressInfo).port}`);
    session.on("error", () => {});
    sessions.push(session);
    await once(session, "connect");
    return session;
  };
  return { limits, timers, connectAgain, handled: () => handled };
}

function open(session: ClientHttp2Session): ClientHttp2Stream {
  const headers = {
    ":method": "POST",
    ":path": DestinationService.get.path,
    "content-type": "application/grpc",
  };
  const call = session.request({ ...headers, te: "trailers" }, { endStream: false });
  call.on("error", () => {});
  return call;
}

/** Resolves with the status once the stream is closed. While the client's half is open, only a reset closes it. */
async function codeOf(call: ClientHttp2Stream): Promise<number> {
  let code = Number.NaN;
  for (const event of ["response", "trailers"] as const)
    call.on(event, (headers) => {
      if (headers["grpc-status"] !== undefined) code = Number(headers["grpc-status"]);
    });
  call.resume();
  await once(call, "close");
  return code;
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not true in time: ${condition}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
