import assert from "node:assert/strict";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, before, describe, it } from "node:test";
import { connect as connectTls, createServer } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import type { CertificateAuthority } from "../src/ca.ts";
import { bearerMetadata, channelCredentials, withBearer } from "../src/credentials.ts";
import type { PeerIdentity } from "../src/peer-identity.ts";
import { TlsServer, type TlsServerOptions } from "../src/tls-server/tls-server.ts";
import { aNode, anAuthority, aServer, atAnotherTime, type Pair, until } from "./cluster.ts";
import { EchoClient } from "./echo.ts";
import { type Cleanups, startTls } from "./started-tls.ts";

const DAY_MS = 86_400_000;

describe("TlsServer", { timeout: 300_000 }, () => {
  let ca: CertificateAuthority;
  const cleanups: Cleanups = [];

  before(async () => {
    ca = await anAuthority();
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  const start = (options: Partial<TlsServerOptions> = {}) => startTls(ca, cleanups, options);

  it("treats a client without a certificate as anonymous and passes its token on", async () => {
    const { client } = await start();
    const answer = await client().who(bearerMetadata("flt_x"));
    assert.equal(answer.peer.type, "anonymous");
    assert.equal(answer.peer.type === "anonymous" && answer.peer.certificateProblem, undefined);
    assert.match(answer.peer.remoteAddress, /^127\.0\.0\.1:\d+$/);
    assert.equal(answer.authorization, "Bearer flt_x");
  });

  it("receives the token of credentials that include one", async () => {
    const { port } = await start();
    const client = new EchoClient(port, withBearer(channelCredentials({ caPem: ca.certPem }), "flt_y"));
    cleanups.push(() => client.close());
    assert.equal((await client.who()).authorization, "Bearer flt_y");
  });

  it("is not used by our clients with a TLS version below 1.3", async () => {
    const { chainPem, keyPem } = await aServer(ca);
    const old = createServer({ cert: chainPem, key: keyPem, ALPNProtocols: ["h2"], maxVersion: "TLSv1.2" });
    const refused = new Promise<Error>((resolve) => old.once("tlsClientError", resolve));
    await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
    const client = new EchoClient(
      (old.address() as AddressInfo).port,
      channelCredentials({ caPem: ca.certPem }),
    );
    cleanups.push(
      () => void old.close(),
      () => client.close(),
    );
    await assert.rejects(client.who(), { code: grpc.status.UNAVAILABLE });
    assert.match(String(await refused), /unsupported protocol|version/i);
  });

  it("identifies a node by its certificate, in handlers and in interceptors", async () => {
    const { client } = await start({ cluster: "home" });
    const node = await aNode(ca, "n1");
    const answer = await client({ certPem: node.certPem, keyPem: node.keyPem }).who();
    assert.ok(answer.peer.type === "authenticated" && answer.peer.identity.type === "node");
    assert.equal(answer.peer.identity.nodeId, "n1");
    assert.equal(answer.peer.identity.serial, node.serial);
    assert.equal(answer.peer.identity.notAfterMs, Math.floor(node.notAfterMs / 1000) * 1000);
    assert.deepEqual(answer.interceptorPeer, answer.peer);
  });

  it("distinguishes the peers of one server", async () => {
    const { client } = await start();
    const clients = await Promise.all(["a", "b", "c"].map(async (id) => client(await aNode(ca, id))));
    clients.push(client());
    const who = (await Promise.all(clients.map((one) => one.who()))).map(({ peer }) => {
      return peer.type === "authenticated" && peer.identity.type === "node"
        ? peer.identity.nodeId
        : peer.type;
    });
    assert.deepEqual(who, ["a", "b", "c", "anonymous"]);
  });

  async function problemOf(pair: Pair, options: Partial<TlsServerOptions> = {}): Promise<string | undefined> {
    const { client } = await start(options);
    const { peer, certificateShown } = await client(pair).who();
    assert.equal(peer.type, "anonymous");
    assert.equal(certificateShown, false, "grpc-js must not show handlers a certificate that says nothing");
    return peer.type === "anonymous" ? peer.certificateProblem : undefined;
  }

  it("rejects a certificate of another authority", async () => {
    assert.match((await problemOf(await aNode(await anAuthority("home")))) ?? "", /UNABLE_TO|SELF_SIGNED/);
  });

  it("rejects a server's certificate that a client presents", async () => {
    const { chainPem, keyPem } = await ca.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
    assert.equal(await problemOf({ certPem: chainPem, keyPem }), "INVALID_PURPOSE");
  });

  it("rejects an expired certificate", async () => {
    assert.equal(await problemOf(await aNode(await atAnotherTime(ca, -31 * DAY_MS))), "CERT_HAS_EXPIRED");
  });

  it("rejects a certificate that is not yet valid", async () => {
    assert.equal(await problemOf(await aNode(await atAnotherTime(ca, DAY_MS))), "CERT_NOT_YET_VALID");
  });

  it("rejects a revoked certificate with the reason", async () => {
    const isRevoked = (identity: PeerIdentity) => identity.type === "node" && identity.nodeId === "n1";
    assert.equal(await problemOf(await aNode(ca, "n1"), { isRevoked }), "REVOKED");
  });

  it("rejects an identity of another cluster", async () => {
    assert.equal(await problemOf(await aNode(ca), { cluster: "elsewhere" }), "NOT_AN_IDENTITY");
  });

  it("closes the open streams of a revoked node, and no others", async () => {
    const denied = new Set<string>();
    const { client, talks, events } = await start({
      isRevoked: (identity) => denied.has(identity.serial),
    });
    const [bad, good] = [await aNode(ca, "bad"), await aNode(ca, "good")];
    const [badTalk, goodTalk] = [client(bad).talk(), client(good).talk()];
    badTalk.say();
    goodTalk.say();
    await until(() => badTalk.echoes === 1 && goodTalk.echoes === 1, "both streams are open");

    denied.add(bad.serial);
    await until(() => badTalk.ended !== undefined, "the revoked stream ends", 20_000);
    assert.equal(badTalk.ended?.code, grpc.status.UNAVAILABLE);
    await until(() => talks.ended === 1, "its handler has ended");
    goodTalk.say();
    await until(() => goodTalk.echoes === 2, "the other stream lives on");
    assert.deepEqual(
      events.map((event) => event.type === "closed" && event.reason),
      ["REVOKED"],
    );
    goodTalk.end();
  });

  it("closes revoked connections at once on request", async () => {
    let revoked = false;
    const { client, tls } = await start({ isRevoked: () => revoked });
    const talk = client(await aNode(ca)).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    revoked = true;
    assert.equal(tls.closeLapsed(), 1);
    await until(() => tls.stats().open === 0, "the connection is gone");
  });

  it("closes a revoked connection at the second sweep, after the peer has received the reason", async () => {
    let revoked = false;
    const { client, tls } = await start({ isRevoked: () => revoked });
    const talk = client(await aNode(ca)).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    revoked = true;
    assert.equal(tls.sweepLapsed(), 0);
    assert.equal(tls.stats().open, 1);
    assert.equal(tls.sweepLapsed(), 1);
    await until(() => tls.stats().open === 0, "the connection is gone");
  });

  it("visits the connections named by a recheck at the next sweep, out of turn", async () => {
    let revoked = false;
    const { client, tls } = await start({ isRevoked: () => revoked });
    const talk = client(await aNode(ca, "gone")).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    revoked = true;
    // No connection is visited in turn.
    const sweep = (): number => tls.sweepLapsed(0);
    assert.deepEqual([sweep(), sweep()], [0, 0]);
    tls.recheck((identity) => identity.type === "node" && identity.nodeId === "gone");
    assert.deepEqual([sweep(), sweep()], [0, 1]);
    await until(() => tls.stats().open === 0, "the connection is gone");
  });

  it("disconnects by node id", async () => {
    const { client, tls } = await start();
    const talk = client(await aNode(ca, "gone")).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    assert.equal(
      tls.disconnect((identity) => identity.type === "node" && identity.nodeId === "other", "x"),
      0,
    );
    assert.equal(
      tls.disconnect((identity) => identity.type === "node" && identity.nodeId === "gone", "removed"),
      1,
    );
    await until(() => talk.ended !== undefined, "the stream ends");
  });

  it("closes an open stream when its certificate expires", async () => {
    let nowMs = Date.now();
    const { client, events } = await start({ nowMs: () => nowMs });
    const node = await aNode(ca);
    const talk = client(node).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    nowMs = node.notAfterMs + 1;
    await until(() => talk.ended !== undefined, "the stream ends", 20_000);
    assert.deepEqual(
      events.map((event) => event.type === "closed" && event.reason),
      ["EXPIRED"],
    );
  });

  it("uses a reloaded certificate for new handshakes only", async () => {
    const { client, tls } = await start();
    const next = await anAuthority("home");
    const talk = client(await aNode(ca)).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");

    tls.reload(await aServer(next, ca.certPem + next.certPem));
    talk.say();
    await until(() => talk.echoes === 2, "the open stream lives on");
    await assert.rejects(client(undefined, "localhost", ca.certPem).who(), { code: grpc.status.UNAVAILABLE });
    for (const authority of [ca, next]) {
      const answer = await client(await aNode(authority), "localhost", next.certPem).who();
      assert.equal(answer.peer.type, "authenticated");
    }
    assert.equal(talk.ended, undefined);
    talk.end();
  });

  it("keeps the old pair if the new one doesn't match", async () => {
    const { client, tls, material } = await start();
    const other = await aServer(ca);
    assert.throws(() => tls.reload({ ...material, keyPem: other.keyPem }), { code: "PAIR_MISMATCH" });
    assert.throws(() => tls.reload({ ...material, clientCaPem: "" }), { code: "CERTIFICATE_INVALID" });
    assert.equal((await client().who()).peer.type, "anonymous");
  });

  it("is rejected by clients that expect another host", async () => {
    const { chainPem, keyPem } = await ca.issueServer({ dnsNames: ["elsewhere"], ipAddresses: [] });
    const { client } = await start({ material: { chainPem, keyPem, clientCaPem: ca.certPem } });
    await assert.rejects(client().who(), (error: grpc.ServiceError) =>
      /does not match certificate's altnames/.test(error.details),
    );
  });

  it("never resumes a session", async () => {
    const { port } = await start();
    const { certPem, keyPem } = await aNode(ca);
    const sessions: Buffer[] = [];
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const socket = connectTls({
        port,
        host: "localhost",
        ca: ca.certPem,
        cert: certPem,
        key: keyPem,
        ALPNProtocols: ["h2"],
        maxVersion,
      });
      socket.on("session", (session) => sessions.push(session));
      await new Promise((resolve) => socket.once("secureConnect", resolve));
      // A session ticket would arrive before the server's first frame.
      await new Promise((resolve) => socket.once("data", resolve));
      socket.destroy();
    }
    const resumed: boolean[] = [];
    for (const session of sessions) {
      const socket = connectTls({
        port,
        host: "localhost",
        ca: ca.certPem,
        cert: certPem,
        key: keyPem,
        ALPNProtocols: ["h2"],
        session,
      });
      await new Promise((resolve) => socket.once("secureConnect", resolve));
      resumed.push(socket.isSessionReused());
      socket.destroy();
    }
    assert.ok(!resumed.includes(true));
  });

  it("drops connections that don't use HTTP/2", async () => {
    const { port, events } = await start();
    const socket = connectTls({ port, host: "localhost", ca: ca.certPem });
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("close", resolve));
    assert.ok(events.some((event) => event.type === "refused" && event.reason === "PROTOCOL"));
  });

  it("limits the handshakes in progress, and serves those that wait", async () => {
    const { client, tcp, tls } = await start({
      limits: { maxHandshakes: 2, maxHandshakesPerAddress: 2, placeMs: 300 },
    });
    const silent = Array.from({ length: 3 }, tcp);
    await until(() => tls.stats().waiting === 1, "one of three waits");
    assert.equal(tls.stats().handshaking, 2);
    const answer = await client().who();
    assert.equal(answer.peer.type, "anonymous");
    assert.ok(
      silent.every((socket) => !socket.destroyed),
      "a slow handshake lost its place, not its connection",
    );
  });

  it("ends a handshake that takes too long", async () => {
    const { tcp, tls, events } = await start({ limits: { handshakeMs: 200 } });
    const socket = tcp();
    await closed(socket);
    assert.deepEqual(
      events.map((event) => event.type === "handshake-failed" && event.reason),
      ["ERR_TLS_HANDSHAKE_TIMEOUT"],
    );
    await until(() => tls.stats().handshaking === 0, "its place is free");
  });

  it("drops connections that waited too long", async () => {
    const { tcp, tls, events } = await start({
      limits: { maxHandshakes: 1, maxHandshakesPerAddress: 1, placeMs: 60_000, waitMs: 200 },
    });
    tcp();
    await until(() => tls.stats().handshaking === 1, "the place is taken");
    await closed(tcp());
    assert.deepEqual(
      events.map((event) => event.type === "refused" && event.reason),
      ["WAITING"],
    );
  });

  it("limits connections", async () => {
    const { client, tcp, tls, events } = await start({ limits: { maxConnections: 1 } });
    assert.equal((await client().who()).peer.type, "anonymous");
    await closed(tcp());
    assert.deepEqual(
      events.map((event) => event.type === "refused" && event.reason),
      ["CONNECTIONS"],
    );
    assert.equal(tls.stats().open, 1);
  });

  it("forgets closed connections", async () => {
    const { client, tls, tcp } = await start();
    const one = client(await aNode(ca));
    await one.who();
    const two = tcp();
    await until(() => tls.stats().handshaking === 1, "a handshake is under way");
    one.close();
    two.destroy();
    await until(() => tls.stats().open === 0 && tls.stats().handshaking === 0, "nothing is left");
  });

  it("lets calls finish within the grace period when it closes", async () => {
    const { client, tls, talks } = await start();
    const talk = client(await aNode(ca)).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    let isClosed = false;
    // Longer than the limit below, so that only the client's disconnection can end it in time.
    const closing = tls.close(60_000).then(() => {
      isClosed = true;
    });
    talk.say();
    await until(() => talk.echoes === 2, "the stream still answers");
    talk.end();
    await until(() => isClosed, "the client has disconnected", 20_000);
    await closing;
    assert.equal(talk.ended?.code, grpc.status.OK);
    assert.equal(talks.started, 1);
  });

  it("closes connections that remain after the grace period", async () => {
    const { client, tls } = await start();
    const talk = client(await aNode(ca)).talk();
    talk.say();
    await until(() => talk.echoes === 1, "the stream is open");
    await tls.close(50);
    await until(() => talk.ended !== undefined, "the stream ends");
  });

  it("reports that it can't listen", async () => {
    const { port } = await start();
    const second = new TlsServer({ material: await aServer(ca), nowMs: Date.now });
    const server = new grpc.Server();
    await assert.rejects(second.listen(server, { host: "127.0.0.1", port }), { code: "LISTEN_FAILED" });
    await second.close();
    server.forceShutdown();
  });
});

async function closed(socket: Socket): Promise<void> {
  await new Promise((resolve) => socket.once("close", resolve));
}
