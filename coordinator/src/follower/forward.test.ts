import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { STALE_HEADER } from "@forage/common/stale-header";
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { pino } from "pino";
import { waitFor } from "../../../hack/lib/wait-for.ts";
import type { Caller } from "../rpc/caller.ts";
import { FORWARDED_CALLER_KEY, FORWARDED_PEER_KEY } from "../rpc/forwarded-caller.ts";
import { REVISION_KEY } from "../rpc/revision-trailer.ts";
import { type ForwardOptions, forward, type ServedAt } from "./forward.ts";

const PATH = "/test.Echo/Talk";
const asIs = (bytes: Buffer): Buffer => bytes;
const METHOD = {
  path: PATH,
  requestStream: true,
  responseStream: true,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
} as const;
const CLIENT = "192.0.2.7:4000";
const NODE: Caller = { type: "node", nodeId: "n1" as never, serial: "a1" };

type Call = ServerDuplexStream<Buffer, Buffer>;

test("passes messages, headers and the end of a stream in both directions", async (t) => {
  const world = await start(t, (call) => {
    const metadata = new Metadata();
    metadata.set("answer", "yes");
    call.sendMetadata(metadata);
    call.on("data", (message: Buffer) => call.write(Buffer.from(`echo ${message}`)));
    call.on("end", () => {
      const trailers = new Metadata();
      trailers.set("trailer", "end");
      call.end(trailers);
    });
  });
  const stream = world.call();
  const ended = new Promise<Metadata>((resolve) => stream.on("status", ({ metadata }) => resolve(metadata)));
  const answered = new Promise<Metadata>((resolve) => stream.on("metadata", resolve));
  stream.write(Buffer.from("a"));
  stream.end(Buffer.from("b"));
  assert.deepEqual((await stream.toArray()).map(String), ["echo a", "echo b"]);
  assert.deepEqual((await answered).get("answer"), ["yes"]);
  assert.deepEqual((await ended).get("trailer"), ["end"]);
  const [call] = world.calls;
  assert.deepEqual(call?.metadata.get("own"), ["1"]);
  assert.deepEqual(
    call?.metadata.get(FORWARDED_CALLER_KEY),
    ['{"node":"n1","serial":"a1"}'],
    "not the client's",
  );
  assert.deepEqual(call?.metadata.get(FORWARDED_PEER_KEY), [CLIENT], "not the client's");
});

test("serves unary clients, and keeps code, text and details of errors", async (t) => {
  const world = await start(t, (call) => {
    call.on("data", () => {});
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from("details"));
    call.on("end", () => call.emit("error", { code: status.ABORTED, details: "conflict", metadata }));
  });
  const error = await new Promise<ServiceError | null>((resolve) =>
    world.client.makeUnaryRequest(PATH, asIs, asIs, Buffer.from("a"), resolve),
  );
  assert.deepEqual([error?.code, error?.details], [status.ABORTED, "conflict"]);
  assert.deepEqual(error?.metadata.get("grpc-status-details-bin").map(String), ["details"]);
});

test("slows the sender for a slow reader, and loses nothing", async (t) => {
  const COUNT = 200;
  const message = Buffer.alloc(64 * 1024, "x");
  const world = await start(t, (call) => {
    let sent = 0;
    const send = (): void => {
      while (sent < COUNT) if (sent++ < COUNT && !call.write(message)) return void call.once("drain", send);
      call.end();
    };
    send();
    call.on("data", () => {});
  });
  const stream = world.call();
  stream.end();
  let received = 0;
  for await (const chunk of stream) {
    received += chunk.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(received, COUNT * message.length);
});

test("ends the leader's call when the client disconnects", async (t) => {
  const cancelled = Promise.withResolvers<void>();
  const world = await start(t, (call) => {
    call.on("data", () => stream.cancel());
    call.on("cancelled", () => cancelled.resolve());
  });
  const stream = world.call();
  stream.on("error", () => {});
  stream.write(Buffer.from("a"));
  await cancelled.promise;
});

test("ends calls with UNAVAILABLE when the leader is lost, changes or is not found", async (t) => {
  const world = await start(t, (call) => call.on("data", () => world.upstream.forceShutdown()));
  const cut = world.call();
  cut.write(Buffer.from("a"));
  assert.equal(await codeOf(cut), status.UNAVAILABLE);
  const refused = world.call();
  assert.equal(await codeOf(refused), status.UNAVAILABLE);

  const quiet = await start(t, (call) => call.on("data", () => quiet.stopping.abort()));
  const stopped = quiet.call();
  stopped.write(Buffer.from("a"));
  assert.equal(await codeOf(stopped), status.UNAVAILABLE);
});

test("serves a method with its own handler here, passes it on, or serves it here when the leader is lost", async (t) => {
  const served: string[] = [];
  const serve = (call: Call, first: Buffer | undefined): void => {
    served.push(String(first));
    call.write(Buffer.from("here"));
    call.end();
  };
  const placeOf = (first: Buffer) => String(first) as ServedAt;
  const own = new Map([[PATH, { serve, placeOf, isStream: false }]]);
  const world = await start(
    t,
    (call) => {
      call.on("data", (message: Buffer) => call.write(Buffer.from(`leader got ${message}`)));
      call.on("end", () => call.end());
    },
    { own, behindMs: () => 250 },
  );
  const stale: unknown[] = [];
  const ask = async (first: ServedAt): Promise<string> => {
    const stream = world.call();
    stream.on("metadata", (headers) => stale.push(...headers.get(STALE_HEADER)));
    stream.end(Buffer.from(first));
    return (await stream.toArray()).map(String).join();
  };
  assert.equal(await ask("here"), "here");
  assert.equal(await ask("leader"), "leader got leader");
  assert.equal(await ask("leader-first"), "leader got leader-first");
  assert.deepEqual([served, world.calls.length], [["here"], 2]);
  assert.deepEqual(stale, []);
  world.upstream.forceShutdown();
  assert.equal(await ask("leader-first"), "here");
  assert.deepEqual(stale, ["250"], "the answer says that it may be out of date");
  await assert.rejects(ask("leader"), { code: status.UNAVAILABLE });
});

test("passes a call on that finds nothing here, and fails it without a leader", async (t) => {
  const serve = (call: Call): void =>
    void call.emit("error", { code: status.NOT_FOUND, details: "not read" });
  for (const place of ["here", "leader-first"] as const) {
    const own = new Map([[PATH, { serve, placeOf: () => place, isStream: false }]]);
    const handle = (call: Call): void => {
      call.on("data", (message: Buffer) => call.write(Buffer.from(`leader got ${message}`)));
      call.on("end", () => call.end());
    };
    const world = await start(t, handle, { own });
    const ask = async (): Promise<string> => {
      const stream = world.call();
      stream.end(Buffer.from("a"));
      return (await stream.toArray()).map(String).join();
    };
    assert.equal(await ask(), "leader got a");
    world.upstream.forceShutdown();
    await assert.rejects(ask(), { code: status.UNAVAILABLE });
  }
});

test("reports a call once the leader has answered it, and its end", async (t) => {
  const reports: string[] = [];
  const onPassed = (path: string) => {
    reports.push(`answered ${path}`);
    return () => void reports.push("ended");
  };
  const world = await start(t, (call) => call.on("data", (message: Buffer) => call.write(message)), {
    onPassed,
  });
  const stream = world.call();
  stream.on("error", () => {});
  stream.write(Buffer.from("a"));
  const answers = stream[Symbol.asyncIterator]();
  await answers.next();
  assert.deepEqual(reports, [`answered ${PATH}`]);
  stream.cancel();
  await waitFor(() => reports.length === 2, { what: "the end is reported", limitMs: 10_000 });
  assert.deepEqual(reports, [`answered ${PATH}`, "ended"]);
});

test("continues a stream of states here when the leader is lost, but no answer that has begun", async (t) => {
  for (const isStream of [true, false]) {
    const serve = (call: Call): void => {
      call.write(Buffer.from("here"));
      call.end();
    };
    const own = new Map([[PATH, { serve, placeOf: () => "leader-first" as const, isStream }]]);
    const world = await start(t, (call) => call.on("data", () => call.write(Buffer.from("leader"))), { own });
    const stream = world.call();
    stream.write(Buffer.from("a"));
    const answers = stream[Symbol.asyncIterator]();
    assert.equal(String((await answers.next()).value), "leader");
    world.upstream.forceShutdown();
    if (isStream) assert.equal(String((await answers.next()).value), "here");
    else await assert.rejects(answers.next(), { code: status.UNAVAILABLE });
  }
});

test("ends a call that has written once this coordinator has what it wrote", async (t) => {
  const revision = Promise.withResolvers<void>();
  const asked: number[] = [];
  const world = await start(
    t,
    (call) => {
      const trailers = new Metadata();
      trailers.set(REVISION_KEY, "42");
      trailers.set("trailer", "end");
      call.on("data", () => call.end(trailers));
    },
    {
      reached: (it) => {
        asked.push(it);
        return revision.promise;
      },
    },
  );
  const stream = world.call();
  let isOver = false;
  const ended = new Promise<Metadata>((resolve) =>
    stream.resume().on("status", ({ metadata }) => {
      isOver = true;
      resolve(metadata);
    }),
  );
  stream.end(Buffer.from("a"));
  await waitFor(() => asked.length === 1, { what: "the leader has answered", limitMs: 10_000 });
  assert.deepEqual([asked, isOver], [[42], false]);
  revision.resolve();
  const trailers = await ended;
  assert.deepEqual([trailers.get("trailer"), trailers.get(REVISION_KEY)], [["end"], []]);
});

function codeOf(stream: ClientDuplexStream<Buffer, Buffer>): Promise<number> {
  stream.on("error", () => {});
  stream.resume();
  return new Promise((resolve) => stream.on("status", ({ code }) => resolve(code)));
}

/** Starts a leader, a server that passes calls on to it, and a client of that server. */
async function start(
  t: TestContext,
  handle: (call: Call) => void,
  more: Pick<ForwardOptions, "own" | "reached" | "onPassed" | "behindMs"> = {},
) {
  const calls: Call[] = [];
  const upstream = new Server();
  upstream.addService(
    { talk: METHOD },
    {
      talk: (call: Call) => {
        calls.push(call);
        call.on("error", () => {});
        handle(call);
      },
    },
  );
  const toLeader = await connect(t, upstream);
  const stopping = new AbortController();
  const server = new Server();
  forward(
    server,
    { talk: METHOD },
    {
      identify: () => NODE,
      peerOf: () => CLIENT,
      client: async () => toLeader,
      stopping: stopping.signal,
      log: pino({ level: "silent" }),
      monotonicMs: () => performance.now(),
      ...more,
    },
  );
  const client = await connect(t, server);
  const call = () => {
    const metadata = new Metadata();
    metadata.set("own", "1");
    metadata.set(FORWARDED_CALLER_KEY, '{"node":"other","serial":"c3"}');
    metadata.set(FORWARDED_PEER_KEY, "203.0.113.1:1");
    return client.makeBidiStreamRequest<Buffer, Buffer>(PATH, asIs, asIs, metadata);
  };
  return { calls, upstream, stopping, client, call };
}

async function connect(t: TestContext, server: Server): Promise<Client> {
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  return client;
}
