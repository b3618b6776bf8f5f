import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { aNode, anAuthority, atAnotherTime } from "../../test/cluster.ts";
import { LapsingConnections } from "./lapsing-connections.ts";
import { Peers } from "./peers.ts";

const DAY_MS = 86_400_000;

it("finds each expired connection without a visit in turn, and returns it at the second check", async () => {
  const ca = await anAuthority();
  const later = await atAnotherTime(ca, DAY_MS);
  const [first, second] = [await aNode(ca, "n1"), await aNode(later, "n2")];
  let nowMs = Date.now();
  const peers = new Peers({ isRevoked: () => false, nowMs: () => nowMs });
  const sockets = [first, second].map(({ certPem }) => aSocket(parsed(certPem)));
  for (const socket of sockets) peers.add(socket);
  const lapsing = new LapsingConnections(peers);
  const check = (): readonly unknown[] => lapsing.due(0).map(({ connection }) => connection.socket);
  nowMs = first.notAfterMs - 1;
  assert.deepEqual([check(), check()], [[], []]);
  nowMs = first.notAfterMs;
  assert.deepEqual([check(), check()], [[], [sockets[0]]]);
  sockets[0]?.emit("close");
  nowMs = second.notAfterMs - 1;
  assert.deepEqual([check(), check()], [[], []]);
  nowMs = second.notAfterMs;
  assert.deepEqual([check(), check()], [[], [sockets[1]]]);
});

it("visits no connection before the earliest end of a certificate", async () => {
  const node = await aNode(await anAuthority());
  const peers = new Peers({ isRevoked: () => false, nowMs: Date.now });
  const { peer } = peers.add(aSocket(parsed(node.certPem)));
  assert.equal(peer.type, "authenticated");
  let reads = 0;
  Object.defineProperty(peer, "identity", { get: () => reads++ });
  new LapsingConnections(peers).due(0);
  assert.equal(reads, 0);
});

it("visits a hundredth of all connections in turn at each check", async () => {
  const certificate = parsed((await aNode(await anAuthority())).certPem);
  let isRevoked = false;
  const peers = new Peers({ isRevoked: () => isRevoked, nowMs: Date.now });
  for (let count = 0; count < 10_100; count++) peers.add(aSocket(certificate));
  const lapsing = new LapsingConnections(peers);
  isRevoked = true;
  assert.deepEqual([lapsing.due().length, lapsing.due().length], [0, 101]);
});

it("visits 100 connections in turn at least", async () => {
  const certificate = parsed((await aNode(await anAuthority())).certPem);
  let isRevoked = false;
  const peers = new Peers({ isRevoked: () => isRevoked, nowMs: Date.now });
  for (let count = 0; count < 101; count++) peers.add(aSocket(certificate));
  const lapsing = new LapsingConnections(peers);
  isRevoked = true;
  assert.deepEqual([lapsing.due().length, lapsing.due().length], [0, 100]);
});

function parsed(pem: string): PeerCertificate {
  return new X509Certificate(pem).toLegacyObject() as PeerCertificate;
}

/** Returns a socket whose handshake has ended with an accepted certificate. */
function aSocket(certificate: PeerCertificate): TLSSocket {
  return Object.assign(new EventEmitter(), {
    ...{ authorized: true, remoteAddress: "192.0.2.1", remotePort: 4000 },
    getPeerCertificate: () => certificate,
  }) as unknown as TLSSocket;
}
