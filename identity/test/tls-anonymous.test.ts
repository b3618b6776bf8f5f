import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { afterEach, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import type { CertificateAuthority } from "../src/ca.ts";
import type { TlsServerOptions } from "../src/tls-server/tls-server.ts";
import { aNode, anAuthority, aServer, until } from "./cluster.ts";
import { type Cleanups, startTls } from "./started-tls.ts";

describe("TlsServer and connections without a certificate", { timeout: 300_000 }, () => {
  let ca: CertificateAuthority;
  const cleanups: Cleanups = [];
  const start = (options: Partial<TlsServerOptions>) => startTls(ca, cleanups, options);

  before(async () => {
    ca = await anAuthority();
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  it("replaces the oldest connection without credentials if there are too many, and none of a node", async () => {
    const { client, tls, events } = await start({ limits: { maxAnonymous: 1 } });
    const [oldest, newest] = [client().talk(), client()];
    oldest.say();
    await until(() => oldest.echoes === 1, "the first stream is open");
    assert.equal((await newest.who()).peer.type, "anonymous");
    await until(() => oldest.ended !== undefined, "the oldest connection is closed");
    assert.equal((await client(await aNode(ca)).who()).peer.type, "authenticated");
    await until(() => tls.stats().open === 2, "two connections are left");
    assert.deepEqual(tls.stats(), { open: 2, anonymous: 1, users: 0, handshaking: 0, waiting: 0 });
    assert.deepEqual(
      events.map((event) => event.type === "refused" && event.reason),
      ["ANONYMOUS"],
    );
  });

  it("closes a connection that presents no credentials in time, and keeps one that was proven", async () => {
    const { client, tls, events } = await start({ limits: { anonymousMs: 500 } });
    const [node, user] = [client(await aNode(ca)), client()];
    for (const { peer } of [await node.who(), await user.who()])
      tls.prove({ getPeer: () => peer.remoteAddress });
    assert.deepEqual([tls.stats().users, tls.stats().anonymous], [1, 0]);
    const proven = user.talk();
    proven.say();
    await until(() => proven.echoes === 1, "the stream is open");
    const stranger = client().talk();
    stranger.say();
    await until(() => stranger.ended !== undefined, "the other connection is closed");
    assert.deepEqual(
      events.map((event) => event.type === "closed" && event.reason),
      ["NO_CREDENTIALS"],
    );
    proven.say();
    await until(() => proven.echoes === 2, "the proven one lives on");
    proven.end();
  });

  it("accepts an expired certificate of a reloaded authority for its renewal, but not one of a replaced authority", async () => {
    const next = await anAuthority("home");
    const [former, present] = [await aNode(ca), await aNode(next)];
    let nowMs = Date.now();
    const { client, tls } = await start({ nowMs: () => nowMs, expiredGraceMs: 90 * 86_400_000 });
    tls.reload(await aServer(next));
    nowMs = Math.max(former.notAfterMs, present.notAfterMs);
    for (const [node, kind] of [
      [former, undefined],
      [present, "node"],
    ] as const) {
      const { peer } = await client(node, "localhost", next.certPem).who();
      assert.equal(peer.type === "anonymous" ? peer.expired?.type : peer.type, kind);
    }
  });

  it("limits the connections with tokens", async () => {
    const { client, tls, events } = await start({ limits: { maxUsers: 1 } });
    const [kept, refused] = [client(), client()];
    for (const one of [kept, refused]) {
      const { peer } = await one.who();
      tls.prove({ getPeer: () => peer.remoteAddress });
    }
    assert.equal(tls.stats().users, 1);
    assert.deepEqual(
      events.map((event) => event.type === "refused" && event.reason),
      ["USERS"],
    );
    kept.close();
    await until(() => tls.stats().users === 0, "a connection that closes gives its place back");
  });

  it("closes a connection with too many calls without credentials, and paces its address", async () => {
    let nowMs = 0;
    const { client, tls, events } = await start({
      limits: { maxAnonymousStreams: 1 },
      monotonicMs: () => nowMs,
    });
    const [abusive, node] = [client(), client(await aNode(ca))];
    const open = node.talk();
    open.say();
    await until(() => open.echoes === 1, "another connection is open");
    const calls = [abusive.talk(), abusive.talk()];
    for (const call of calls) call.say();
    await until(() => events.some(({ type }) => type === "cut"), "the connection is cut");
    abusive.close();
    const next = client().talk();
    next.say();
    await until(() => tls.stats().waiting === 1, "the next connection of the address waits");
    open.say();
    await until(() => open.echoes === 2, "open connections of the address go on");
    nowMs += 125;
    await until(() => next.echoes === 1, "the next connection starts in its turn");
    assert.equal(tls.stats().waiting, 0);
  });

  for (const [what, flood] of [
    ["a handshake", handshake],
    ["a handshake that fails", failure],
  ] as const)
    it(`starts connections of an address one by one after too many of ${what} without use, and serves others`, async () => {
      let nowMs = 0;
      const { client, tls, port, events } = await start({
        limits: { unusedHandshakes: { burst: 3, perSecond: 1 } },
        monotonicMs: () => nowMs,
      });
      const cuts = () => events.flatMap((it) => (it.type === "cut" ? [it.reason] : [])).length;
      for (let count = 0; count < 3; count++) await flood(port);
      await until(() => tls.stats().open + tls.stats().handshaking === 0, "all are closed");
      assert.equal(cuts(), 0);
      nowMs += 1_000;
      for (let count = 0; count < 2; count++) await flood(port);
      await until(() => cuts() === 1, "the address is paced");
      const next = connectTcp({ port, host: "127.0.0.1", localAddress: FLOODER }).on("error", () => {});
      cleanups.push(() => void next.destroy());
      await until(() => tls.stats().waiting === 1, "its next connection waits");

      assert.equal((await client().who()).peer.type, "anonymous", "another address is served");

      assert.equal(tls.stats().waiting, 1);
      nowMs += 125;
      await until(() => tls.stats().waiting === 0, "the next connection starts in its turn");
    });

  it("does not count handshakes of nodes, of proven connections, and of used ones", async () => {
    const { client, tls, events } = await start({ limits: { unusedHandshakes: { burst: 0, perSecond: 0 } } });
    const node = client(await aNode(ca));
    await node.who();
    node.close();
    for (const note of [tls.prove.bind(tls), tls.forgive.bind(tls)]) {
      const used = client();
      const { peer } = await used.who();
      note({ getPeer: () => peer.remoteAddress });
      used.close();
    }
    await until(() => tls.stats().open === 0, "all are closed");
    assert.deepEqual(events, []);
    const unused = client();
    await unused.who();
    unused.close();
    await until(() => events.length === 1, "one without use counts");
  });
});

const FLOODER = "127.0.0.2";

async function handshake(port: number): Promise<void> {
  const socket = connectTls({
    ...{ port, host: "127.0.0.1", localAddress: FLOODER, ALPNProtocols: ["h2"] },
    rejectUnauthorized: false,
  }).on("error", () => {});
  await once(socket, "secureConnect");
  socket.destroy();
  await once(socket, "close");
}

async function failure(port: number): Promise<void> {
  const socket = connectTcp({ port, host: "127.0.0.1", localAddress: FLOODER }).on("error", () => {});
  socket.resume().write("GET / HTTP/1.1\r\n\r\n");
  await once(socket, "close");
}
