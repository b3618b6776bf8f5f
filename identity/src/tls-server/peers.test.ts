import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { EventEmitter } from "node:events";
import { before, describe, it } from "node:test";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { aNode, anAuthority, aServer } from "../../test/cluster.ts";
import type { CertificateAuthority } from "../ca.ts";
import { type AnonymousPeer, Peers } from "./peers.ts";

const GRACE_MS = 60_000;

describe("an expired certificate", () => {
  let ca: CertificateAuthority;
  let node: Awaited<ReturnType<typeof aNode>>;

  before(async () => {
    ca = await anAuthority("home");
    node = await aNode(ca);
  });

  const renewable = (
    pem: string,
    { nowMs = node.notAfterMs, cluster = "home", isRevoked = false }: Partial<Circumstances> = {},
  ) => {
    const authority = new X509Certificate(ca.certPem);
    const peers = new Peers({
      ...{ cluster, expiredGraceMs: GRACE_MS },
      isRevoked: () => isRevoked,
      nowMs: () => nowMs,
      isIssued: (certificate) =>
        certificate.checkIssued(authority) && certificate.verify(authority.publicKey),
    });
    const { peer } = peers.add(aSocket(pem, "CERT_HAS_EXPIRED"));
    assert.equal(peer.type, "anonymous");
    return (peer as AnonymousPeer).expired;
  };

  it("can be renewed by its node within the grace period", () => {
    const expired = renewable(node.certPem);
    assert.ok(expired?.type === "node");
    assert.equal(expired.nodeId, "n1");
    assert.notEqual(renewable(node.certPem, { nowMs: node.notAfterMs + GRACE_MS - 1 }), undefined);
  });

  it("grants nothing on a server without a grace period", async () => {
    const strange = await aNode(await anAuthority("home"));
    const [server = ""] = (await aServer(ca)).chainPem.split(/(?<=-----END CERTIFICATE-----\n)/);
    const { validFromDate } = new X509Certificate(node.certPem);
    const cases: readonly (readonly [string, string, Partial<Circumstances>])[] = [
      ["the grace is over", node.certPem, { nowMs: node.notAfterMs + GRACE_MS }],
      ["it is not valid yet", node.certPem, { nowMs: validFromDate.getTime() - 1 }],
      ["it is revoked", node.certPem, { isRevoked: true }],
      ["it is of another cluster", node.certPem, { cluster: "other" }],
      ["another authority of the same name issued it", strange.certPem, {}],
      ["it is the authority's", ca.certPem, {}],
      ["it is a server's", server, {}],
    ];
    for (const [what, pem, circumstances] of cases)
      assert.equal(renewable(pem, circumstances), undefined, what);
  });

  it("grants nothing if the handshake found a problem other than expiry", () => {
    const peers = new Peers({
      ...{ isRevoked: () => false, nowMs: () => node.notAfterMs, expiredGraceMs: GRACE_MS },
      isIssued: () => true,
    });
    const { peer } = peers.add(aSocket(node.certPem, "DEPTH_ZERO_SELF_SIGNED_CERT"));
    assert.deepEqual(peer, {
      type: "anonymous",
      remoteAddress: "192.0.2.1:4000",
      certificateProblem: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
  });
});

it("is forgotten with its connection if it was not accepted", () => {
  const peers = new Peers({
    ...{ isRevoked: () => false, nowMs: () => 0, expiredGraceMs: 0 },
    isIssued: () => false,
  });
  const socket = Object.assign(new EventEmitter(), {
    ...{ authorized: false, remoteAddress: "192.0.2.1", remotePort: 4000 },
    getPeerCertificate: () => ({}),
  }) as unknown as TLSSocket;
  const call = { getPeer: () => "192.0.2.1:4000" };
  const connection = peers.add(socket);
  assert.equal(peers.anonymousConnection(call), connection);
  socket.emit("close");
  assert.deepEqual([peers.anonymousConnection(call), peers.size], [undefined, 0]);
});

interface Circumstances {
  readonly nowMs: number;
  readonly cluster: string;
  readonly isRevoked: boolean;
}

/** Returns a socket whose handshake has ended with a problem of the peer's certificate. */
function aSocket(pem: string, authorizationError: string): TLSSocket {
  const certificate = new X509Certificate(pem).toLegacyObject() as PeerCertificate;
  return Object.assign(new EventEmitter(), {
    ...{ authorized: false, authorizationError, remoteAddress: "192.0.2.1", remotePort: 4000 },
    getPeerCertificate: () => certificate,
  }) as unknown as TLSSocket;
}
