import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import {
  type Answer,
  type DecodedPacket,
  decode,
  encode,
  type Question,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import { DnsServer, type DnsServerOptions } from "./dns-server.ts";
import { Forwarder } from "./forwarder.ts";
import { framed, type QueryServer, queryOver } from "./query-server.ts";

const LIMIT = { timeout: 180_000 };

test(
  "pods find services by name, and see whether there is a name or nothing of the type",
  LIMIT,
  async (t) => {
    const { resolver } = await start(t, [service("web", { virtualIps: ["10.96.0.5"] })]);
    assert.deepEqual(await resolver.resolve4("web.shop.svc.cluster.local"), ["10.96.0.5"]);
    assert.deepEqual(await resolver.resolve4("WEB.shop.svc.Cluster.Local"), ["10.96.0.5"]);
    const [found] = await resolver.resolveSrv("_http._tcp.web.shop.svc.cluster.local");
    assert.equal(`${found?.name}:${found?.port}`, "web.shop.svc.cluster.local:80");
    assert.deepEqual(await resolver.resolvePtr("5.0.96.10.in-addr.arpa"), ["web.shop.svc.cluster.local"]);
    await assert.rejects(resolver.resolve6("web.shop.svc.cluster.local"), { code: "ENODATA" });
    await assert.rejects(resolver.resolve4("gone.shop.svc.cluster.local"), { code: "ENOTFOUND" });
  },
);

const skip = existsSync("/proc/net/if_inet6") ? false : "needs IPv6";
test("answers over IPv6 too, with addresses of both families", { ...LIMIT, skip }, async (t) => {
  const web = service("web", { virtualIps: ["10.96.0.5", "fd96::5"] });
  const { resolver } = await start(t, [web], { address: "::1" });
  assert.deepEqual(await resolver.resolve4("web.shop.svc.cluster.local"), ["10.96.0.5"]);
  assert.deepEqual(await resolver.resolve6("web.shop.svc.cluster.local"), ["fd96::5"]);
  const reversed = `5.${"0.".repeat(27)}6.9.d.f.ip6.arpa`;
  assert.deepEqual(await resolver.resolvePtr(reversed), ["web.shop.svc.cluster.local"]);
});

test("every answer has a TTL, including negative ones", LIMIT, async (t) => {
  const { ask } = await start(t, [service("web", { virtualIps: ["10.96.0.5"] })]);
  const found = decode(await ask({ type: "A", name: "Web.shop.svc.cluster.local" }));
  assert.equal(found.answers?.[0]?.name, "Web.shop.svc.cluster.local", "as it was asked");
  assert.equal(ttlOf(found), 5);
  assert.equal(found.flag_aa, true);
  const none = decode(await ask({ type: "A", name: "gone.shop.svc.cluster.local" }));
  const [soa] = none.authorities ?? [];
  assert.equal(soa?.type, "SOA");
  assert.equal(soa?.type === "SOA" && soa.data.minimum, 5);
});

test("an answer that exceeds a datagram is truncated, and the client retries over TCP", LIMIT, async (t) => {
  const endpoints = Array.from({ length: 200 }, (_, index) => ({
    pod: `db-${index}`,
    node: "n1",
    podIp: `10.64.1.${index}`,
    hostIp: "192.0.2.1",
    hostPorts: [20_000 + index],
  }));
  const { resolver, ask } = await start(t, [service("db", { type: "Headless", endpoints })]);
  const cut = decode(await ask({ type: "A", name: "db.shop.svc.cluster.local" }));
  assert.equal((cut.flags ?? 0) & TRUNCATED_RESPONSE, TRUNCATED_RESPONSE);
  assert.equal(cut.answers?.length, 0);
  assert.equal((await resolver.resolve4("db.shop.svc.cluster.local")).length, 200);
});

test(
  "other names are resolved by the host's servers, once for all clients and again after their TTL",
  LIMIT,
  async (t) => {
    const clock = { nowMs: 0 };
    const upstream = await startUpstream(t, (question) => [
      { type: "A", name: question.name, ttl: 30, data: "198.51.100.7" },
    ]);
    const { resolver, ask } = await start(t, [], { ask: queryOver(upstream.port), clock });
    assert.deepEqual(await resolver.resolve4("example.org"), ["198.51.100.7"]);
    assert.deepEqual(await resolver.resolve4("example.org"), ["198.51.100.7"]);
    assert.equal(upstream.asked(), 1);
    clock.nowMs = 12_000;
    const aged = decode(await ask({ type: "A", name: "other.example" }));
    clock.nowMs = 22_000;
    const later = decode(await ask({ type: "A", name: "other.example" }));
    assert.equal(ttlOf(aged), 30);
    assert.equal(ttlOf(later), 20, "10 s have gone by");
    clock.nowMs = 80_000;
    assert.deepEqual(await resolver.resolve4("example.org"), ["198.51.100.7"]);
    assert.equal(upstream.asked(), 3);
  },
);

test("skips a failed server, and returns a failure at once if none answers", LIMIT, async (t) => {
  const asked: string[] = [];
  const down: QueryServer = async (server, question) => {
    asked.push(server);
    if (server === "192.0.2.1") return undefined;
    const reply = encode({
      type: "response",
      id: question.readUInt16BE(0),
      flags: 5,
      questions: decode(question).questions ?? [],
    });
    return server === "192.0.2.2" ? reply : undefined;
  };
  const { ask } = await start(t, [], { ask: down, upstreams: ["192.0.2.1", "192.0.2.2"] });
  assert.equal(rcodeOf(await ask({ type: "A", name: "example.org" })), 5);
  assert.deepEqual(asked, ["192.0.2.1", "192.0.2.2"]);
  const nobody = await start(t, [], { ask: async () => undefined, upstreams: [] });
  assert.equal(rcodeOf(await nobody.ask({ type: "A", name: "example.org" })), 2);
  await assert.rejects(nobody.resolver.resolve4("example.org"), { code: "ESERVFAIL" });
});

test("ignores messages that are not queries", LIMIT, async (t) => {
  const { send, server } = await start(t, [service("web", { virtualIps: ["10.96.0.5"] })]);
  assert.equal(rcodeOf(await send(encode({ type: "query", id: 7, questions: [] }))), 1);
  const status = encode({ type: "query", id: 8, questions: [{ type: "A", name: "a.b" }] });
  status.writeUInt16BE(2 << 11, 2);
  assert.equal(rcodeOf(await send(status)), 4);
  const chaos = encode({
    type: "query",
    id: 9,
    questions: [{ type: "TXT", name: "version.bind", class: "CH" }],
  });
  assert.equal(rcodeOf(await send(chaos)), 5);
  const loop = Buffer.concat([
    encode({ type: "query", id: 10, questions: [] }),
    Buffer.from([0xc0, 12, 0, 1, 0, 1]),
  ]);
  loop.writeUInt16BE(1, 4);
  assert.equal(rcodeOf(await send(loop)), 1);
  // The server ignores messages that are too short or are answers.
  const socket = createSocket("udp4");
  t.after(() => socket.close());
  for (const junk of [Buffer.from("x"), encode({ type: "response", id: 1 })])
    socket.send(junk, server.port, "127.0.0.1");
  assert.equal(decode(await send(encode({ type: "query", id: 11, questions: [] }))).id, 11);
});

test("answers all queries of a TCP client that sends many at once, in order", LIMIT, async (t) => {
  const { server } = await start(t, [service("web", { virtualIps: ["10.96.0.5"] })]);
  const question = (id: number): Buffer =>
    framed(encode({ type: "query", id, questions: [{ type: "A", name: "web.shop.svc.cluster.local" }] }));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(Buffer.concat(Array.from({ length: 20 }, (_, id) => question(id))));
  const ids: number[] = [];
  let received = Buffer.alloc(0);
  for await (const bytes of socket) {
    received = Buffer.concat([received, bytes as Buffer]);
    while (received.length >= 2 && received.length >= received.readUInt16BE(0) + 2) {
      const length = received.readUInt16BE(0);
      ids.push(decode(received.subarray(2, length + 2)).id ?? -1);
      received = received.subarray(length + 2);
    }
    if (ids.length === 20) break;
  }
  assert.deepEqual(
    ids,
    Array.from({ length: 20 }, (_, id) => id),
  );
});

function rcodeOf(answer: Buffer): number {
  return answer.readUInt16BE(2) & 15;
}

function ttlOf({ answers }: DecodedPacket): number | undefined {
  const [first] = answers ?? [];
  return first?.type === "A" ? first.ttl : undefined;
}

test("closes a connection from a foreign address, and drops its queries", async (t) => {
  const asked: string[] = [];
  const mayAsk = (address: string) => {
    asked.push(address);
    return false;
  };
  const { server } = await start(t, [], { mayAsk });
  const socket = connect({ host: "127.0.0.1", port: server.port });
  socket.on("error", () => undefined);

  await new Promise((resolve) => socket.once("close", resolve));

  assert.deepEqual(asked, ["127.0.0.1"]);
});

interface StartOptions {
  readonly ask?: QueryServer;
  readonly upstreams?: readonly string[];
  readonly clock?: { nowMs: number };
  /** The address to listen on. */
  readonly address?: string;
  readonly mayAsk?: (address: string) => boolean;
}

async function start(t: TestContext, services: readonly ServiceState[], options: StartOptions = {}) {
  const { ask = async () => undefined, upstreams = ["127.0.0.1"], clock = { nowMs: 0 } } = options;
  const { address = "127.0.0.1" } = options;
  const forwarder = new Forwarder({ upstreams: async () => upstreams, ask, monotonicMs: () => clock.nowMs });
  const byKey = new Map(services.map((it) => [`${it.namespace}/${it.name}`, it]));
  const view = { services: byKey, clusterDomain: "cluster.local", virtualIpRanges: ["10.96.0.0/16"] };
  const dependencies = {
    view,
    domain: "cluster.local",
    viewpoint: { node: "n1", reach: [4, 6] },
    families: [4, 6],
  } as const;
  const mayAsk = options.mayAsk ?? (() => true);
  const server = await openOnFreePort({
    address,
    port: 0,
    dependencies,
    forwarder,
    mayAsk,
    random: () => 0.5,
  });
  t.after(() => server.close());
  const resolver = new Resolver({ timeout: 20_000, tries: 1 });
  resolver.setServers([address.includes(":") ? `[${address}]:${server.port}` : `${address}:${server.port}`]);
  const send = (bytes: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const socket = createSocket("udp4");
      const timer = setTimeout(() => reject(new Error("no answer")), 20_000);
      socket.once("message", (answer) => {
        clearTimeout(timer);
        socket.close();
        resolve(answer);
      });
      socket.send(bytes, server.port, "127.0.0.1");
    });
  const askOne = (question: Question): Promise<Buffer> =>
    send(encode({ type: "query", id: 77, flags: 0x100, questions: [question] }));
  return { server, resolver, send, ask: askOne };
}

/** Opens a server on a port that is free for both protocols. Another process may use the chosen UDP port for TCP. */
async function openOnFreePort(options: DnsServerOptions, tries = 10): Promise<DnsServer> {
  try {
    return await DnsServer.open(options);
  } catch (error) {
    if (tries === 1 || !(error instanceof Error && "code" in error && error.code === "EADDRINUSE"))
      throw error;
    return openOnFreePort(options, tries - 1);
  }
}

async function startUpstream(t: TestContext, answer: (question: Question) => Answer[]) {
  const socket = createSocket("udp4");
  let asked = 0;
  socket.on("message", (bytes, from) => {
    asked++;
    const { id, questions = [] } = decode(bytes);
    const [question] = questions;
    assert.ok(question);
    const reply = encode({ type: "response", id, flags: 0x180, questions, answers: answer(question) });
    socket.send(reply, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => socket.close());
  return { port: socket.address().port, asked: () => asked };
}

function service(name: string, fields: Parameters<typeof ServiceState.fromPartial>[0]): ServiceState {
  const ports = [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }];
  return ServiceState.fromPartial({ namespace: "shop", name, type: "ClusterIP", ports, ...fields });
}
