import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { DestinationProfile, DestinationService, Update } from "@forage/proto/destination";
import {
  Client,
  type ClientReadableStream,
  credentials,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  status,
} from "@grpc/grpc-js";
import { type Clock, systemClock } from "../src/clock.ts";
import { DestinationRelay } from "../src/destination/relay.ts";
import { RelayServer } from "../src/destination/relay-server.ts";
import { Upstream } from "../src/destination/upstream.ts";

const LIMIT = { timeout: 180_000 };
const WEB = "web.shop.svc.cluster.local:80";

test(
  "proxies with equal look-ups share one stream, and each gets the whole state and every change",
  LIMIT,
  async (t) => {
    const { coordinator, lookUp } = await started(t);
    const [first, second] = [lookUp("get", WEB), lookUp("get", WEB)];
    await until(() => coordinator.calls.length === 1);
    coordinator.send(add(1, 2));
    await until(() => first.ports() === "1,2" && second.ports() === "1,2");
    coordinator.send(remove(1));
    await until(() => first.ports() === "2" && second.ports() === "2");
    const late = lookUp("get", WEB);
    await until(() => late.ports() === "2");
    assert.equal(coordinator.calls.length, 1);
    const [call] = coordinator.calls;
    assert.equal(call?.metadata.get("forage-namespace")[0], "shop");
    assert.deepEqual(JSON.parse(call?.request.contextToken ?? ""), { ns: "shop", nodeName: "n1" });
  },
);

test(
  "while the coordinator is away proxies get the last known state, and afterwards the difference",
  LIMIT,
  async (t) => {
    const { coordinator, lookUp } = await started(t);
    const open = lookUp("get", WEB);
    await until(() => coordinator.calls.length === 1);
    coordinator.send(add(1, 2));
    await until(() => open.ports() === "1,2");
    const port = coordinator.port;
    coordinator.stop();
    const late = lookUp("get", WEB);
    await until(() => late.ports() === "1,2");
    assert.equal(open.ended, undefined);
    const next = await aCoordinator(t, port);
    await until(() => next.calls.length === 1);
    next.send(add(2, 3));
    await until(() => open.ports() === "2,3" && late.ports() === "2,3");
    assert.equal(next.calls.length, 1);
  },
);

test("without a known profile, connections continue to their original address", LIMIT, async (t) => {
  const { coordinator, lookUp, pass } = await started(t, { manual: true });
  coordinator.stop();
  const profile = lookUp("getProfile", "10.96.0.1:80");
  await until(() => pass(1_500));
  await until(() => profile.messages.length === 1);
  const { retryBudget, fullyQualifiedName } = DestinationProfile.decode(
    profile.messages[0] ?? Buffer.alloc(0),
  );
  assert.equal(retryBudget?.minRetriesPerSecond, 10);
  assert.equal(fullyQualifiedName, "");
});

test(
  "passes the coordinator's rejection to the proxy, and queries again at the next look-up",
  LIMIT,
  async (t) => {
    const { coordinator, lookUp } = await started(t);
    for (const count of [1, 2]) {
      const refused = lookUp("get", WEB);
      await until(() => coordinator.calls.length === count);
      coordinator.calls.at(-1)?.emit("error", { code: status.INVALID_ARGUMENT, details: "no such name" });
      await until(() => refused.ended !== undefined);
      assert.deepEqual(
        [refused.ended?.code, refused.ended?.details],
        [status.INVALID_ARGUMENT, "no such name"],
      );
    }
  },
);

test("rejects an invalid DNS name, and more streams than a client may have", LIMIT, async (t) => {
  const { relay, lookUp } = await started(t);
  const long = lookUp("get", `${"x".repeat(300)}.svc.cluster.local`);
  await until(() => long.ended?.code === status.INVALID_ARGUMENT);
  const codes: number[] = [];
  const sink = { send: () => {}, fail: ({ code }: { readonly code: number }) => void codes.push(code) };
  const client = { address: "10.64.0.9", namespace: "shop" };
  const stops = Array.from({ length: 2_001 }, () => relay.read("get", { path: WEB }, client, sink));
  assert.deepEqual(codes, [status.RESOURCE_EXHAUSTED]);
  const other = relay.read("get", { path: WEB }, { ...client, address: "10.64.0.8" }, sink);
  assert.equal(codes.length, 1);
  for (const stop of [...stops, other]) {
    stop?.();
    stop?.();
  }
  assert.deepEqual(relay.size, { lookups: 1, streams: 0 });
});

test("keeps a look-up for a minute after its last proxy has disconnected", LIMIT, async (t) => {
  const { coordinator, relay, lookUp, pass } = await started(t, { manual: true });
  const first = lookUp("get", WEB);
  await until(() => coordinator.calls.length === 1);
  coordinator.send(add(1));
  await until(() => first.ports() === "1");
  first.close();
  await until(() => relay.size.streams === 0);
  const again = lookUp("get", WEB);
  await until(() => again.ports() === "1");
  assert.equal(pass(60_000), false, "it is kept for as long as a proxy reads it");
  again.close();
  await until(() => relay.size.streams === 0);
  assert.equal(coordinator.calls.length, 1);
  assert.ok(pass(60_000));
  assert.equal(relay.size.lookups, 0);
  await until(() => coordinator.cancelled === 1);
});

test("serves pods of this host only", LIMIT, async (t) => {
  const { lookUp } = await started(t, { client: undefined });
  const stranger = lookUp("get", WEB);
  await until(() => stranger.ended !== undefined);
  assert.equal(stranger.ended?.code, status.UNAVAILABLE);
});

interface Setup {
  /** Whether time stands still, so that only `pass` runs the timers with a given delay. */
  readonly manual?: boolean;
  readonly client?: { readonly namespace: string } | undefined;
}

async function started(t: TestContext, setup: Setup = {}) {
  const coordinator = await aCoordinator(t);
  const timers = new Set<{ readonly delayMs: number; readonly run: () => void }>();
  const manual: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    schedule: (delayMs, run) => {
      const timer = { delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  const pass = (delayMs: number): boolean => {
    const due = [...timers].filter((timer) => timer.delayMs === delayMs);
    for (const timer of due) {
      timers.delete(timer);
      timer.run();
    }
    return due.length > 0;
  };
  const upstream = new Upstream(
    async () => new Client(`127.0.0.1:${coordinator.port}`, credentials.createInsecure(), FAST),
  );
  const clock = setup.manual === true ? manual : systemClock;
  const relay = new DestinationRelay({ open: upstream.open, nodeName: "n1", clock, random: () => 0 });
  const known = "client" in setup ? setup.client : { namespace: "shop" };
  const server = await RelayServer.open({
    address: "127.0.0.1",
    port: 0,
    relay,
    clock,
    clientAt: (address) => known && { address, ...known },
  });
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    relay.close();
    await server.close();
    upstream.close();
  });
  return {
    coordinator,
    relay,
    pass,
    lookUp: (method: Method, path: string) => new Proxied(client, method, path),
  };
}

type Method = "get" | "getProfile";

const FAST = { "grpc.enable_retries": 0, "grpc.use_local_subchannel_pool": 1 };
const raw = (bytes: Buffer): Buffer => bytes;

/** The client side of a stream, as in a proxy. */
class Proxied {
  readonly messages: Buffer[] = [];
  readonly #ports = new Set<number>();
  ended: { readonly code: number; readonly details: string } | undefined;
  readonly #call: ClientReadableStream<Buffer>;

  constructor(client: Client, method: Method, path: string) {
    const { path: name, requestSerialize } = DestinationService[method];
    const request = { scheme: "", path, contextToken: '{"ns":"forged","nodeName":"forged"}' };
    this.#call = client.makeServerStreamRequest(name, requestSerialize, raw, request);
    this.#call.on("error", () => {});
    this.#call.on("status", ({ code, details }) => {
      this.ended = { code, details };
    });
    this.#call.on("data", (bytes: Buffer) => {
      this.messages.push(bytes);
      if (method === "get") this.#take(Update.decode(bytes));
    });
  }

  ports(): string {
    return [...this.#ports].sort().join();
  }

  close(): void {
    this.#call.cancel();
  }

  #take({ update }: Update): void {
    if (update?.$case === "add") for (const { addr } of update.value.addrs) this.#ports.add(addr?.port ?? 0);
    else if (update?.$case === "remove") for (const { port } of update.value.addrs) this.#ports.delete(port);
    else this.#ports.clear();
  }
}

type Call = ServerWritableStream<{ readonly path: string; readonly contextToken: string }, Buffer>;

/** Starts a coordinator with scripted answers. */
async function aCoordinator(t: TestContext, port = 0) {
  const server = new Server();
  const calls: Call[] = [];
  const state = { cancelled: 0 };
  const handler = (call: Call): void => {
    calls.push(call);
    call.on("cancelled", () => {
      state.cancelled += 1;
    });
    call.on("error", () => {});
  };
  const answering = { responseSerialize: raw, responseDeserialize: raw };
  server.addService(
    {
      get: { ...DestinationService.get, ...answering },
      getProfile: { ...DestinationService.getProfile, ...answering },
    },
    { get: handler, getProfile: handler },
  );
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, it) =>
      error === null ? resolve(it) : reject(error),
    );
  });
  t.after(() => server.forceShutdown());
  return {
    calls,
    port: bound,
    get cancelled() {
      return state.cancelled;
    },
    send: (bytes: Buffer) => void calls.at(-1)?.write(bytes),
    stop: () => server.forceShutdown(),
  };
}

function add(...ports: readonly number[]): Buffer {
  const addrs = ports.map((port) => ({ addr: address(port), weight: 1 }));
  return Buffer.from(
    Update.encode(
      Update.fromPartial({ update: { $case: "add", value: { addrs, metricLabels: {} } } }),
    ).finish(),
  );
}

function remove(...ports: readonly number[]): Buffer {
  const update = { $case: "remove", value: { addrs: ports.map(address) } } as const;
  return Buffer.from(Update.encode(Update.fromPartial({ update })).finish());
}

function address(port: number) {
  return { ip: { ip: { $case: "ipv4" as const, value: 0x0a000001 } }, port };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
