import assert from "node:assert/strict";
import { afterEach, before, describe, it } from "node:test";
import type { CertificateAuthority } from "../src/ca.ts";
import type { TlsServerOptions } from "../src/tls-server/tls-server.ts";
import { aNode, anAuthority, until } from "./cluster.ts";
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

  it("replaces the oldest connection without credentials when there are too many, and no node's", async () => {
    const { client, tls, events } = await start({ limits: { maxAnonymous: 1 } });
    const [oldest, newest] = [client().talk(), client()];
    oldest.say();
    await until(() => oldest.echoes === 1, "the first stream is open");
    assert.equal((await newest.who()).peer.kind, "anonymous");
    await until(() => oldest.ended !== undefined, "the oldest connection is closed");
    assert.equal((await client(await aNode(ca)).who()).peer.kind, "authenticated");
    await until(() => tls.stats().open === 2, "two connections are left");
    assert.deepEqual(tls.stats(), { open: 2, anonymous: 1, users: 0, handshaking: 0, waiting: 0 });
    assert.deepEqual(
      events.map((event) => event.kind === "refused" && event.reason),
      ["ANONYMOUS"],
    );
  });

  it("closes a connection that shows no credentials in time, and keeps one that was proven", async () => {
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
      events.map((event) => event.kind === "closed" && event.reason),
      ["NO_CREDENTIALS"],
    );
    proven.say();
    await until(() => proven.echoes === 2, "the proven one lives on");
    proven.end();
  });

  it("limits the connections of tokens", async () => {
    const { client, tls, events } = await start({ limits: { maxUsers: 1 } });
    const [kept, refused] = [client(), client()];
    for (const one of [kept, refused]) {
      const { peer } = await one.who();
      tls.prove({ getPeer: () => peer.remoteAddress });
    }
    assert.equal(tls.stats().users, 1);
    assert.deepEqual(
      events.map((event) => event.kind === "refused" && event.reason),
      ["USERS"],
    );
    kept.close();
    await until(() => tls.stats().users === 0, "a connection that closes gives its place back");
  });

  it("cuts a connection with too many calls without credentials, and paces its address", async () => {
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
    await until(() => events.some(({ kind }) => kind === "cut"), "the connection is cut");
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
});
