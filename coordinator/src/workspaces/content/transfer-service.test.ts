import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { NodeId } from "@forage/identity";
import {
  type UploadRequest,
  type WorkspaceNodeServiceClient,
  WorkspaceNodeServiceService,
  WorkspaceOrder,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { credentials, makeClientConstructor, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { pino } from "pino";
import { serve } from "../../rpc/serve.ts";
import type { ContentStore, PutOptions, StoredObject } from "./content-store.ts";
import { Exports } from "./exports.ts";
import { MemoryContentStore } from "./memory-content-store.ts";
import { TransferService } from "./transfer-service.ts";
import type { TransferLimits } from "./transfer-slots.ts";

const LIMIT = { timeout: 180_000 };
const content = Buffer.alloc(600_000, "content ");
const OBJECT = "u1/w1/i1_t1.tar.zst";
const START = { instanceId: "i1", transferId: "t1", object: OBJECT, sizeBytes: 0n, sha256: "" };

test("stores an archive that an order names, and returns its size and digest", LIMIT, async (t) => {
  const world = await setUp(t);
  const { archive, existed } = await world.upload(parts(content));
  assert.equal(existed, false);
  assert.partialDeepStrictEqual(archive, { object: OBJECT, ...digestOf(content) });
  assert.deepEqual(await world.download({ instanceId: "i1", object: OBJECT, offsetBytes: 0n }), content);
  assert.deepEqual(
    await world.download({ instanceId: "i1", object: OBJECT, offsetBytes: 599_000n }),
    content.subarray(599_000),
  );
});

test("returns at once when the store already holds the same archive", LIMIT, async (t) => {
  const world = await setUp(t);
  await world.upload(parts(content));
  const begun = [{ $case: "start", value: { ...START, ...digestOf(content) } }] as const;
  assert.equal((await world.upload(begun, { open: true })).existed, true);
});

test("replaces a stored archive whose digest differs", LIMIT, async (t) => {
  const world = await setUp(t);
  await world.upload(parts(content));
  const other = Buffer.from("other content");
  assert.equal((await world.upload(parts(other))).existed, false);
  assert.deepEqual(await world.download({ instanceId: "i1", object: OBJECT, offsetBytes: 0n }), other);
});

test(
  "refuses an archive that differs from the announced one, and keeps no part of the archive",
  LIMIT,
  async (t) => {
    const world = await setUp(t);
    const good = digestOf(content);
    const bad = { sizeBytes: good.sizeBytes, sha256: "0".repeat(64) };
    await assert.rejects(world.upload(parts(content, { end: bad })), {
      code: status.INVALID_ARGUMENT,
      details: /send it again/,
    });
    await assert.rejects(world.upload(parts(content, { start: bad })), { code: status.INVALID_ARGUMENT });
    await assert.rejects(world.upload(parts(content, { end: { ...good, sizeBytes: 1n } })), {
      code: status.INVALID_ARGUMENT,
    });
    assert.equal(await world.store.stat(OBJECT), undefined);
  },
);

test("refuses streams without a start, without an end, or with two starts", LIMIT, async (t) => {
  const world = await setUp(t);
  const [first, data, end] = parts(Buffer.from("x"));
  assert.ok(first && data && end);
  for (const wrong of [[data, end], [first, data], [first, first, data, end], [], [first, end, data]]) {
    const expected = wrong.at(-1) === data && wrong[1] === end ? /announced/ : /upload/;
    await assert.rejects(world.upload(wrong), { code: status.INVALID_ARGUMENT, details: expected });
  }
  assert.equal(await world.store.stat(OBJECT), undefined);
});

test("refuses objects and workspaces that no order of the node names", LIMIT, async (t) => {
  const world = await setUp(t);
  await world.upload(parts(content));
  const denied = { code: status.PERMISSION_DENIED };
  const named = (given: object) => [{ $case: "start", value: { ...START, ...given } } as Part];
  await assert.rejects(world.upload(named({ object: "u1/w1/i1_t2.tar.zst" })), denied);
  await assert.rejects(world.upload(named({ transferId: "t2" })), denied);
  await assert.rejects(world.upload(named({ object: "../etc/passwd" })), { code: status.INVALID_ARGUMENT });
  await assert.rejects(world.upload(named({ instanceId: "i2" })), { code: status.NOT_FOUND });
  await assert.rejects(
    world.download({ instanceId: "i1", object: "u2/w1/i9.tar.zst", offsetBytes: 0n }),
    denied,
  );
  await assert.rejects(world.download({ instanceId: "i2", object: OBJECT, offsetBytes: 0n }), {
    code: status.NOT_FOUND,
  });
  world.node = "b";
  await assert.rejects(world.upload(parts(content)), { code: status.NOT_FOUND });
  await assert.rejects(world.download({ instanceId: "i1", object: OBJECT, offsetBytes: 0n }), {
    code: status.NOT_FOUND,
  });
});

test(
  "keeps a stored archive when the order of another upload is withdrawn before that upload ends",
  LIMIT,
  async (t) => {
    const world = await setUp(t);
    await world.upload(parts(content));
    const [first, ...rest] = parts(Buffer.from("other content"));
    assert.ok(first);
    const second = world.begin([first]);
    await second.reached();
    world.order.transfers = [];
    second.send(rest);
    await assert.rejects(second.response, { code: status.PERMISSION_DENIED });
    assert.partialDeepStrictEqual(await world.store.stat(OBJECT), { sizeBytes: content.byteLength });
  },
);

test(
  "refuses transfers beyond the limit of a node, and frees a slot when a client disconnects",
  LIMIT,
  async (t) => {
    const world = await setUp(t, { perNode: 1 });
    const first = world.begin([{ $case: "start", value: START }]);
    await first.reached();
    await assert.rejects(world.upload(parts(content)), { code: status.RESOURCE_EXHAUSTED });
    first.cancel();
    await assert.rejects(first.response);
    await world.until(() => world.service.open === 0);
    await world.upload(parts(content));
  },
);

test("ends an upload that sends no data for the idle time", LIMIT, async (t) => {
  const world = await setUp(t, { idleMs: 5_000 });
  const silent = world.begin([{ $case: "start", value: START }]);
  await silent.reached();
  world.clock.advance(5_000);
  await assert.rejects(silent.response, { code: status.DEADLINE_EXCEEDED });
  assert.equal(world.service.open, 0);
});

test("supersedes an upload in progress by a newer upload of the same object", LIMIT, async (t) => {
  const world = await setUp(t);
  const old = world.begin([{ $case: "start", value: START }]);
  await old.reached();
  const ended = assert.rejects(old.response, { code: status.ABORTED, details: /another upload/ });
  await world.upload(parts(content));
  await ended;
});

test("frees the slot of a download whose reader has stopped reading", LIMIT, async (t) => {
  const world = await setUp(t, { idleMs: 5_000 });
  await world.upload(parts(content));
  const context = {
    method: "Download",
    caller: nodeCaller("a"),
    peer: "p",
    signal: new AbortController().signal,
  };
  const reading = world.service.download({ instanceId: "i1", object: OBJECT, offsetBytes: 0n }, context);
  await reading.next();
  assert.equal(world.service.open, 1);
  world.clock.advance(5_000);
  assert.equal(world.service.open, 0);
  await assert.rejects(reading.next(), { code: "DEADLINE_EXCEEDED" });
});

/** The paths of methods that nodes may call: these tests are about the handlers, not about the coordinator's access rules. */
const DEFINITION = {
  sync: WorkspaceNodeServiceService.sync,
  upload: { ...WorkspaceNodeServiceService.upload, path: "/forage.agent.v1.AgentService/Serve" },
  download: { ...WorkspaceNodeServiceService.download, path: "/forage.agent.v1.AgentService/Connect" },
} as const;

type Part = NonNullable<UploadRequest["part"]>;

function parts(bytes: Buffer, given: { readonly start?: object; readonly end?: object } = {}): Part[] {
  const data: Part[] = [];
  for (let at = 0; at < bytes.length; at += 100_000)
    data.push({ $case: "data", value: bytes.subarray(at, at + 100_000) });
  return [
    { $case: "start", value: { ...START, ...given.start } },
    ...data,
    { $case: "end", value: { ...digestOf(bytes), ...given.end } },
  ];
}

function digestOf(bytes: Buffer) {
  return { sizeBytes: BigInt(bytes.length), sha256: createHash("sha256").update(bytes).digest("hex") };
}

function nodeCaller(nodeId: string) {
  return { type: "node", nodeId: nodeId as NodeId } as const;
}

/** A store that reports when a write has begun. */
class WatchedStore extends MemoryContentStore implements ContentStore {
  begun = Promise.withResolvers<void>();

  override put(name: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    this.begun.resolve();
    return super.put(name, chunks, options);
  }
}

async function setUp(t: TestContext, limits: Partial<TransferLimits> = {}) {
  const clock = new VirtualClock();
  const store = new WatchedStore({ nowMs: () => 1_000 });
  const order = WorkspaceOrder.fromPartial({
    instanceId: "i1",
    transfers: [{ id: "t1", object: OBJECT }],
    restore: { object: OBJECT },
  });
  const service = new TransferService({
    exports: new Exports(),
    store,
    orders: { orderOf: (node, id) => (node === "a" && id === "i1" ? order : undefined) },
    clock,
    limits,
  });
  const world = { node: "a" };
  const server = new Server();
  const sync = async function* () {};
  const handlers = {
    sync,
    upload: service.upload.bind(service),
    download: service.download.bind(service),
  };
  serve(server, DEFINITION, handlers, {
    identify: () => nodeCaller(world.node),
    log: pino({ level: "silent" }),
    stopping: new AbortController().signal,
    monotonicMs: () => 0,
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const Client = makeClientConstructor(DEFINITION, "WorkspaceNodeService");
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createInsecure(),
  ) as unknown as WorkspaceNodeServiceClient;
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  const begin = (sent: readonly Part[], { open = true } = {}) => {
    store.begun = Promise.withResolvers();
    const result = Promise.withResolvers<Awaited<ReturnType<typeof service.upload>>>();
    result.promise.catch(() => {});
    const call = client.upload((error, response) =>
      error ? result.reject(error) : result.resolve(response),
    );
    call.on("error", () => {});
    for (const part of sent) call.write({ part });
    if (!open) call.end();
    const send = (more: readonly Part[]): void => {
      for (const part of more) call.write({ part });
    };
    return {
      response: result.promise,
      send,
      cancel: () => call.cancel(),
      reached: () => store.begun.promise,
    };
  };
  return Object.assign(world, {
    clock,
    store,
    service,
    order,
    begin,
    upload: (sent: readonly Part[], { open = false } = {}) => begin(sent, { open }).response,
    download: async (request: Parameters<typeof service.download>[0]) => {
      const chunks: Uint8Array[] = [];
      for await (const { data } of client.download(request)) chunks.push(data);
      return Buffer.concat(chunks);
    },
    until: async (condition: () => boolean) => {
      while (!condition()) await new Promise((resolve) => setImmediate(resolve));
    },
  });
}
