import { X509Certificate } from "node:crypto";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { identityOf, type PeerIdentity } from "../peer-identity.ts";

/** The peer of a call. */
export type Peer = AuthenticatedPeer | AnonymousPeer;

export interface AuthenticatedPeer {
  readonly type: "authenticated";
  readonly identity: PeerIdentity;
  /** `address:port` as seen by the server. */
  readonly remoteAddress: string;
}

/**
 * A peer without a certificate, or with a certificate that contains no valid identity. It may still present a bearer
 * token.
 */
export interface AnonymousPeer {
  readonly type: "anonymous";
  readonly remoteAddress: string;
  /**
   * Set if a certificate was presented but rejected. The response must include it, because the peer has no other way to
   * know.
   */
  readonly certificateProblem?: CertificateProblem;
  /** The identity of an expired certificate that may still be renewed. It grants the right to renew, and no other. */
  readonly expired?: PeerIdentity;
  /** The identity of a valid certificate that was revoked. It identifies the caller but grants no rights. */
  readonly revoked?: PeerIdentity;
}

/**
 * `REVOKED`: the caller's list denies it. `NOT_AN_IDENTITY`: the certificate is valid, but names no node or client of
 * this cluster. `EXPIRED`: it expired while connected. Other values are OpenSSL's codes, such as `CERT_HAS_EXPIRED`,
 * `INVALID_PURPOSE`, `DEPTH_ZERO_SELF_SIGNED_CERT`.
 */
export type CertificateProblem = "REVOKED" | "NOT_AN_IDENTITY" | "EXPIRED" | (string & {});

/** The part of a grpc-js call, in a handler or an interceptor, that identifies its connection. */
export interface PeeredCall {
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate | undefined };
  getPeer(): string;
}

/** The extended key usage of client certificates. */
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

/** The bytes given to grpc-js in place of the certificate. It only checks that there are some. */
const SHOWN = Buffer.alloc(1);

export interface Connection {
  readonly socket: TLSSocket;
  readonly peer: Peer;
}

/** A connection whose certificate is no longer accepted. */
export interface LapsedConnection {
  readonly connection: Connection;
  readonly problem: CertificateProblem;
}

/**
 * The TLS connections of one server and their peers. grpc-js gives handlers the peer's certificate but not the
 * connection, so each connection has a unique object in place of the certificate, by which its peer is looked up.
 */
export class Peers {
  readonly #byCertificate = new WeakMap<object, AuthenticatedPeer>();
  readonly #problems = new Map<string, CertificateProblem>();
  readonly #connections = new Set<Connection>();
  /** No certificate of a connection expires before this time, except those that `expired` has returned. */
  #earliestExpiryMs = Number.POSITIVE_INFINITY;
  readonly #isRevoked: (identity: PeerIdentity) => boolean;
  readonly #cluster: string | undefined;
  readonly #nowMs: () => number;
  readonly #anonymous = new Map<string, Connection>();
  readonly #expiredGraceMs: number;
  readonly #isIssued: (certificate: X509Certificate) => boolean;

  constructor(options: {
    readonly isRevoked: (identity: PeerIdentity) => boolean;
    readonly nowMs: () => number;
    readonly cluster?: string | undefined;
    /** The time after its expiry within which a certificate can still be renewed. Default: none. */
    readonly expiredGraceMs?: number | undefined;
    /** Reports whether an authority of the server issued the certificate. */
    readonly isIssued?: (certificate: X509Certificate) => boolean;
  }) {
    this.#isRevoked = options.isRevoked;
    this.#nowMs = options.nowMs;
    this.#cluster = options.cluster;
    this.#expiredGraceMs = options.expiredGraceMs ?? 0;
    this.#isIssued = options.isIssued ?? (() => false);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Returns the connection of a call if it has no accepted certificate. */
  anonymousConnection(call: Pick<PeeredCall, "getPeer">): Connection | undefined {
    return this.#anonymous.get(call.getPeer());
  }

  /** Adds a connection whose handshake is complete. It is removed when it closes. */
  add(socket: TLSSocket): Connection {
    const remoteAddress = addressOf(socket);
    const certificate = socket.getPeerCertificate();
    const verdict = this.#judge(socket, certificate);
    const expired = isExpiry(verdict) ? this.#expiredIdentity(certificate) : undefined;
    const revoked = verdict === "REVOKED" ? identityOf(certificate) : undefined;
    const peer: Peer =
      typeof verdict === "object"
        ? { type: "authenticated", identity: verdict, remoteAddress }
        : {
            type: "anonymous",
            remoteAddress,
            ...(verdict && { certificateProblem: verdict }),
            ...(expired && { expired }),
            ...(revoked && { revoked }),
          };
    const connection = { socket, peer };
    this.#connections.add(connection);
    if (peer.type === "authenticated") {
      this.#earliestExpiryMs = Math.min(this.#earliestExpiryMs, peer.identity.notAfterMs);
      // Node.js parses the certificate on each access and returns a new object of 2 kB. This small object is used
      // instead.
      const shown = { raw: SHOWN };
      socket.getPeerCertificate = (() => shown) as TLSSocket["getPeerCertificate"];
      this.#byCertificate.set(shown, peer);
    } else {
      this.#anonymous.set(remoteAddress, connection);
      // grpc-js checks this flag before it gives a handler the certificate.
      socket.authorized = false;
      if (peer.certificateProblem !== undefined) this.#problems.set(remoteAddress, peer.certificateProblem);
    }
    socket.on("close", () => this.#forget(connection));
    return connection;
  }

  /**
   * Returns the current peer of a call. A certificate that was revoked or has expired since the handshake is no longer
   * accepted.
   */
  of(call: PeeredCall): Peer {
    const peer = this.#authenticated(call);
    const remoteAddress = peer?.remoteAddress ?? call.getPeer();
    if (peer === undefined) {
      const certificateProblem = this.#problems.get(remoteAddress);
      const known = this.#anonymous.get(remoteAddress)?.peer;
      const expired = this.#stillRenewable(known);
      const revoked = known?.type === "anonymous" ? known.revoked : undefined;
      return {
        type: "anonymous",
        remoteAddress,
        ...(certificateProblem && { certificateProblem }),
        ...(expired && { expired }),
        ...(revoked && { revoked }),
      };
    }
    const certificateProblem = this.#problemOf(peer.identity);
    return certificateProblem === undefined ? peer : { type: "anonymous", remoteAddress, certificateProblem };
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  /**
   * Returns the connections whose certificate has expired. Visits connections only if one may have expired since the last
   * call.
   */
  expired(): Connection[] {
    const nowMs = this.#nowMs();
    if (nowMs < this.#earliestExpiryMs) return [];
    this.#earliestExpiryMs = Number.POSITIVE_INFINITY;
    const expired: Connection[] = [];
    for (const connection of this.#connections) {
      const { peer } = connection;
      if (peer.type !== "authenticated") continue;
      const { notAfterMs } = peer.identity;
      if (notAfterMs <= nowMs) expired.push(connection);
      else this.#earliestExpiryMs = Math.min(this.#earliestExpiryMs, notAfterMs);
    }
    return expired;
  }

  /** Yields the connections whose certificate expired or was revoked, each with the reason. */
  *lapsed(): Generator<LapsedConnection> {
    for (const connection of this.#connections) {
      const problem = this.problemOf(connection);
      if (problem !== undefined) yield { connection, problem };
    }
  }

  /**
   * Returns the reason why the connection's certificate is no longer accepted; `undefined` if it is, or if there is
   * none.
   */
  problemOf({ peer }: Connection): CertificateProblem | undefined {
    return peer.type === "authenticated" ? this.#problemOf(peer.identity) : undefined;
  }

  #judge(socket: TLSSocket, certificate: PeerCertificate): PeerIdentity | CertificateProblem | undefined {
    // Node.js returns an empty object if the peer presented no certificate.
    if (certificate?.raw === undefined) return undefined;
    if (!socket.authorized) return String(socket.authorizationError ?? "UNVERIFIED");
    const identity = identityOf(certificate);
    if (identity === undefined) return "NOT_AN_IDENTITY";
    if (this.#cluster !== undefined && identity.cluster !== this.#cluster) return "NOT_AN_IDENTITY";
    return this.#problemOf(identity) ?? identity;
  }

  /**
   * Returns the identity of an expired certificate, if expiry is its only problem. OpenSSL reports one problem of
   * several, so all others are checked here. The handshake has proven that the peer has the key.
   */
  #expiredIdentity(presented: PeerCertificate): PeerIdentity | undefined {
    const certificate = new X509Certificate(presented.raw);
    const identity = identityOf(presented);
    if (identity === undefined || (this.#cluster !== undefined && identity.cluster !== this.#cluster))
      return undefined;
    const isClient = !certificate.ca && certificate.keyUsage?.includes(CLIENT_AUTH) === true;
    if (!isClient || certificate.validFromDate.getTime() > this.#nowMs()) return undefined;
    return this.#isIssued(certificate) && this.#isRenewable(identity) ? identity : undefined;
  }

  #stillRenewable(peer: Peer | undefined): PeerIdentity | undefined {
    const expired = peer?.type === "anonymous" ? peer.expired : undefined;
    return expired !== undefined && this.#isRenewable(expired) ? expired : undefined;
  }

  #isRenewable(identity: PeerIdentity): boolean {
    return !this.#isRevoked(identity) && this.#nowMs() < identity.notAfterMs + this.#expiredGraceMs;
  }

  #problemOf(identity: PeerIdentity): CertificateProblem | undefined {
    if (this.#isRevoked(identity)) return "REVOKED";
    return identity.notAfterMs <= this.#nowMs() ? "EXPIRED" : undefined;
  }

  #authenticated(call: PeeredCall): AuthenticatedPeer | undefined {
    try {
      const certificate = call.getAuthContext().sslPeerCertificate;
      return certificate === undefined ? undefined : this.#byCertificate.get(certificate);
    } catch {
      // grpc-js throws if the connection is already closed.
      return undefined;
    }
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.peer.type === "anonymous") {
      this.#anonymous.delete(connection.peer.remoteAddress);
      this.#problems.delete(connection.peer.remoteAddress);
    }
  }
}

/** Reports whether a verdict means expiry: `CERT_HAS_EXPIRED` by the host's clock, `EXPIRED` by the server's own. */
function isExpiry(verdict: unknown): boolean {
  return verdict === "CERT_HAS_EXPIRED" || verdict === "EXPIRED";
}

function addressOf(socket: TLSSocket): string {
  return `${socket.remoteAddress}:${socket.remotePort}`;
}
