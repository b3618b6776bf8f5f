import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { Server, ServerCredentials, status } from "@grpc/grpc-js";
import { Admission, type AdmissionOptions } from "./admission.ts";
import type { Caller } from "./caller.ts";
import { serverOptions } from "./server-options.ts";

const LIMIT = { timeout: 180_000 };
const JOIN = "/forage.agent.v1.EnrollmentService/Join";
const APPLY = "/forest.v1.ForageService/ApplyResources";
const REPORT = "/forage.coordinator.v1.CoordinatorService/Report";
const ANONYMOUS: Caller = { type: "anonymous" };
const USER: Caller = { type: "user", name: "token:a", grants: [{ role: "admin", namespaces: "*" }] };

test("answers and resets a call without credentials before its request arrives", LIMIT, async (t) => {
  const { session, admission, handled } = await served(t, { identify: () => ANONYMOUS });
  const answers = await Promise.all(Array.from({ length: 50 }, () => answerOf(open(session, APPLY))));
  for (const { code } of answers) assert.equal(code, status.UNAUTHENTICATED);
  assert.equal(handled(), 0);
  assert.equal(admission.openCalls, 0);
});

test(
  "allows four open calls on a connection without credentials, and refuses the fifth",
  LIMIT,
  async (t) => {
    const { session, admission } = await served(t, { identify: () => ANONYMOUS });
    const held = Array.from({ length: 4 }, () => open(session, JOIN));
    assert.equal((await answerOf(open(session, JOIN))).code, status.RESOURCE_EXHAUSTED);
    assert.equal(admission.openCalls, 4);
    held[0]?.end(framed(10));
    if (held[0]) assert.equal((await answerOf(held[0])).code, status.OK);
    const next = open(session, JOIN);
    next.end(framed(10));
    assert.equal((await answerOf(next)).code, status.OK);
  },
);

test("does not count another coordinator as a caller without credentials", LIMIT, async (t) => {
  const { session } = await served(t, {
    identify: () => ({ type: "anonymous", coordinator: "c2" }),
    limits: { maxAnonymousBytes: 100, maxAnonymousPerAddress: 1, maxAnonymousCalls: 2 },
  });
  const calls = Array.from({ length: 5 }, () => open(session, REPORT));
  for (const call of calls) call.end(framed(1_000));
  const codes = await Promise.all(calls.map(async (call) => (await answerOf(call)).code));
  assert.deepEqual(codes, Array(5).fill(status.OK));
  assert.equal((await answerOf(open(session, APPLY))).code, status.UNAUTHENTICATED);
});

test("limits the calls without credentials from one address", LIMIT, async (t) => {
  const { session, connectAgain } = await served(t, {
    identify: () => ANONYMOUS,
    limits: { maxAnonymousPerAddress: 3 },
  });
  const held = Array.from({ length: 2 }, () => open(session, JOIN));
  const other = await connectAgain();
  const last = open(other, JOIN);
  assert.equal((await answerOf(open(other, JOIN))).code, status.RESOURCE_EXHAUSTED);
  for (const call of [...held, last]) call.close();
});

test("closes a connection that keeps calling without credentials", LIMIT, async (t) => {
  const { session } = await served(t, { identify: () => ANONYMOUS, limits: { maxAnonymousCalls: 5 } });
  const gone = once(session, "close");
  for (let i = 0; i < 6; i++) open(session, APPLY);
  await gone;
});

test("refuses a request that does not arrive in time", LIMIT, async (t) => {
  const timers: { readonly delayMs: number; readonly run: () => void; cancelled: boolean }[] = [];
  const { session, handled } = await served(t, {
    identify: () => USER,
    schedule: (delayMs, run) => {
      const timer = { delayMs, run, cancelled: false };
      timers.push(timer);
      return () => {
        timer.cancelled = true;
      };
    },
  });
  const complete = open(session, JOIN);
  complete.end(framed(10));
  assert.equal((await answerOf(complete)).code, status.OK);
  assert.equal(handled(), 1);
  const half = open(session, JOIN);
  half.write(framed(10).subarray(0, 7));
  const notEnded = open(session, JOIN);
  notEnded.write(framed(10));
  await until(() => timers.length === 3);
  assert.deepEqual(
    timers.map(({ cancelled }) => cancelled),
    [true, false, false],
  );
  const answers = [half, notEnded].map(answerOf);
  for (const timer of timers.slice(1)) timer.run();
  for (const { code } of await Promise.all(answers)) assert.equal(code, status.DEADLINE_EXCEEDED);
});

test("refuses a request without credentials as soon as it exceeds the size limit", LIMIT, async (t) => {
  const { session, handled } = await served(t, {
    identify: () => ANONYMOUS,
    limits: { maxAnonymousBytes: 1_000 },
  });
  const call = open(session, JOIN);
  call.write(framed(100_000).subarray(0, 2_000));
  assert.equal((await answerOf(call)).code, status.RESOURCE_EXHAUSTED);
  assert.equal(handled(), 0);
});

test("limits the open calls of each client over all its connections", LIMIT, async (t) => {
  let caller: Caller = USER;
  const { session, connectAgain } = await served(t, {
    identify: () => caller,
    limits: { maxCallsPerClient: 3 },
  });
  const held = Array.from({ length: 3 }, () => open(session, APPLY));
  const other = await connectAgain();
  assert.equal((await answerOf(open(other, APPLY))).code, status.RESOURCE_EXHAUSTED);
  caller = { ...USER, name: "token:b" };
  const call = open(other, APPLY);
  call.end(framed(10));
  assert.equal((await answerOf(call)).code, status.OK);
  for (const one of held) one.close();
});

test("releases the slot and the timer of every ended call, whichever side ended it", LIMIT, async (t) => {
  const clock = new VirtualClock();
  const options = { identify: () => USER, limits: { maxCalls: 2 }, schedule: clock.schedule };
  const { session, admission } = await served(t, options);
  const [answered, cancelled] = [open(session, APPLY), open(session, APPLY)];
  await until(() => admission.openCalls === 2);
  assert.equal(admission.clients, 1);
  answered.end(framed(10));
  await answerOf(answered);
  await until(() => admission.openCalls === 1);
  assert.equal(clock.pending, 1, "the other's request is still awaited");
  cancelled.close();
  await until(() => admission.openCalls === 0 && clock.pending === 0);
  assert.equal(admission.clients, 0);
});

test("limits the open calls of the port", LIMIT, async (t) => {
  const { session } = await served(t, { identify: () => USER, limits: { maxCalls: 2 } });
  const held = Array.from({ length: 2 }, () => open(session, APPLY));
  assert.equal((await answerOf(open(session, APPLY))).code, status.RESOURCE_EXHAUSTED);
  for (const one of held) one.close();
});

test("allows more streams on a connection after its first call with credentials", LIMIT, async (t) => {
  const proven: string[] = [];
  const { session } = await served(t, {
    identify: () => USER,
    onProven: (call) => proven.push(call.getPeer()),
  });
  const streams = (): number | undefined => session.remoteSettings.maxConcurrentStreams;
  await until(() => streams() === 100);
  for (let i = 0; i < 2; i++) {
    const call = open(session, APPLY);
    call.end(framed(10));
    await answerOf(call);
  }
  await until(() => streams() === 16_384);
  assert.equal(proven.length, 1);
});

async function served(
  t: TestContext,
  options: Partial<AdmissionOptions> & Pick<AdmissionOptions, "identify">,
) {
  const admission = new Admission({ schedule: () => () => {}, ...options });
  const server = new Server(serverOptions(100, [admission.interceptor]));
  let handled = 0;
  const raw = (bytes: Buffer): Buffer => bytes;
  for (const path of [JOIN, APPLY, REPORT]) {
    const method = {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: raw,
      requestDeserialize: raw,
      responseSerialize: raw,
      responseDeserialize: raw,
    } as const;
    server.addService(
      { method },
      {
        method: (_call: unknown, done: (error: null, bytes: Buffer) => void) => {
          handled += 1;
          done(null, Buffer.alloc(0));
        },
      },
    );
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const net = createServer((socket) => injector.injectConnection(socket));
  await new Promise<void>((resolve) => net.listen(0, "127.0.0.1", resolve));
  const { port } = net.address() as AddressInfo;
  t.after(() => {
    net.close();
    server.forceShutdown();
  });
  const connectAgain = async (): Promise<ClientHttp2Session> => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on("error", () => {});
    t.after(() => session.destroy());
    await once(session, "connect");
    return session;
  };
  return { admission, session: await connectAgain(), connectAgain, handled: () => handled };
}

function open(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const call = session.request(
    { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
    { endStream: false },
  );
  call.on("error", () => {});
  return call;
}

/**
 * Resolves when the stream closes. While the client's side is open, only a reset by the server
 * closes it.
 */
function answerOf(call: ClientHttp2Stream): Promise<{ readonly code: number }> {
  return new Promise((resolve) => {
    let code = Number.NaN;
    const note = (headers: { readonly "grpc-status"?: unknown }): void => {
      if (headers["grpc-status"] !== undefined) code = Number(headers["grpc-status"]);
    };
    call.on("response", note);
    call.on("trailers", note);
    call.on("close", () => resolve({ code }));
    call.resume();
  });
}

function framed(bytes: number): Buffer {
  const message = Buffer.alloc(5 + bytes);
  message.writeUInt32BE(bytes, 1);
  return message;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
