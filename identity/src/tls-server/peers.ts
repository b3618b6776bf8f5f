import { X509Certificate } from "node:crypto";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { identityOf, type PeerIdentity } from "../peer-identity.ts";

/** The peer of a call. */
export type Peer = AuthenticatedPeer | AnonymousPeer;

export interface AuthenticatedPeer {
  readonly kind: "authenticated";
  readonly identity: PeerIdentity;
  /** `address:port` as seen by the server. */
  readonly remoteAddress: string;
}

/** A peer without a certificate, or with one without a usable name. It may still present a bearer token. */
export interface AnonymousPeer {
  readonly kind: "anonymous";
  readonly remoteAddress: string;
  /** Set when a certificate was presented but refused. The response must include it, because the peer can't learn it otherwise. */
  readonly certificateProblem?: CertificateProblem;
  /** The identity of an expired certificate that may still be renewed. It proves the right to renew, and no other right. */
  readonly expired?: PeerIdentity;
  /** The identity of a valid certificate that was revoked. It proves who calls, and grants no rights. */
  readonly revoked?: PeerIdentity;
}

/**
 * `REVOKED`: denied by the caller's list. `NOT_AN_IDENTITY`: verified, but names no node or client of this cluster. `EXPIRED`:
 * ran out while connected. Otherwise OpenSSL's word, such as `CERT_HAS_EXPIRED`, `INVALID_PURPOSE`, `DEPTH_ZERO_SELF_SIGNED_CERT`.
 */
export type CertificateProblem = "REVOKED" | "NOT_AN_IDENTITY" | "EXPIRED" | (string & {});

/** The part of a grpc-js call (handler's or interceptor's) that identifies its connection. */
export interface PeeredCall {
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate | undefined };
  getPeer(): string;
}

/** The extended key usage of client certificates. */
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

/** The bytes of the certificate that grpc-js is shown. It asks only whether there are any. */
const SHOWN = Buffer.alloc(1);

export interface Connection {
  readonly socket: TLSSocket;
  readonly peer: Peer;
}

/** A connection whose certificate counts no longer. */
export interface Lapsed {
  readonly connection: Connection;
  readonly problem: CertificateProblem;
}

/**
 * The TLS connections of one server and who is behind them. grpc-js shows handlers the peer's certificate but not the connection;
 * so each connection shows one object in the place of its certificate, which is the key under which the peer is found again.
 */
export class Peers {
  readonly #byCertificate = new WeakMap<object, AuthenticatedPeer>();
  readonly #problems = new Map<string, CertificateProblem>();
  readonly #connections = new Set<Connection>();
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
    /** The time after its end for which a certificate may still be renewed. Default: none. */
    readonly expiredGraceMs?: number | undefined;
    /** Reports whether one of our authorities issued the certificate. */
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

  /** Returns the connection without an accepted certificate on which a call is made. */
  anonymousConnection(call: Pick<PeeredCall, "getPeer">): Connection | undefined {
    return this.#anonymous.get(call.getPeer());
  }

  /** Enters a connection whose handshake is done; it leaves by itself when it closes. */
  add(socket: TLSSocket): Connection {
    const remoteAddress = addressOf(socket);
    const certificate = socket.getPeerCertificate();
    const verdict = this.#judge(socket, certificate);
    const expired = isExpiry(verdict) ? this.#expiredIdentity(certificate) : undefined;
    const revoked = verdict === "REVOKED" ? identityOf(certificate) : undefined;
    const peer: Peer =
      typeof verdict === "object"
        ? { kind: "authenticated", identity: verdict, remoteAddress }
        : {
            kind: "anonymous",
            remoteAddress,
            ...(verdict && { certificateProblem: verdict }),
            ...(expired && { expired }),
            ...(revoked && { revoked }),
          };
    const connection = { socket, peer };
    this.#connections.add(connection);
    if (peer.kind === "authenticated") {
      // Node parses the certificate on each access and returns a new object of 2 kB. This small one stands for it.
      const shown = { raw: SHOWN };
      socket.getPeerCertificate = (() => shown) as TLSSocket["getPeerCertificate"];
      this.#byCertificate.set(shown, peer);
    } else {
      this.#anonymous.set(remoteAddress, connection);
      // grpc-js asks this flag before it shows a certificate to a handler.
      socket.authorized = false;
      if (peer.certificateProblem !== undefined) this.#problems.set(remoteAddress, peer.certificateProblem);
    }
    socket.once("close", () => this.#forget(connection));
    return connection;
  }

  /** Returns the peer of a call as of now. A certificate that was revoked or has expired since the handshake no longer counts. */
  of(call: PeeredCall): Peer {
    const peer = this.#authenticated(call);
    const remoteAddress = peer?.remoteAddress ?? call.getPeer();
    if (peer === undefined) {
      const certificateProblem = this.#problems.get(remoteAddress);
      const known = this.#anonymous.get(remoteAddress)?.peer;
      const expired = this.#stillRenewable(known);
      const revoked = known?.kind === "anonymous" ? known.revoked : undefined;
      return {
        kind: "anonymous",
        remoteAddress,
        ...(certificateProblem && { certificateProblem }),
        ...(expired && { expired }),
        ...(revoked && { revoked }),
      };
    }
    const certificateProblem = this.#problemOf(peer.identity);
    return certificateProblem === undefined ? peer : { kind: "anonymous", remoteAddress, certificateProblem };
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  /** Connections whose certificate ran out or was revoked, each with the reason. */
  *lapsed(): Generator<Lapsed> {
    for (const connection of this.#connections) {
      const problem = this.problemOf(connection);
      if (problem !== undefined) yield { connection, problem };
    }
  }

  /** Returns why the connection's certificate no longer counts. Undefined: it does, or there is none. */
  problemOf({ peer }: Connection): CertificateProblem | undefined {
    return peer.kind === "authenticated" ? this.#problemOf(peer.identity) : undefined;
  }

  #judge(socket: TLSSocket, certificate: PeerCertificate): PeerIdentity | CertificateProblem | undefined {
    // Node gives an empty object when the peer presented none.
    if (certificate?.raw === undefined) return undefined;
    if (!socket.authorized) return String(socket.authorizationError ?? "UNVERIFIED");
    const identity = identityOf(certificate);
    if (identity === undefined) return "NOT_AN_IDENTITY";
    if (this.#cluster !== undefined && identity.cluster !== this.#cluster) return "NOT_AN_IDENTITY";
    return this.#problemOf(identity) ?? identity;
  }

  /**
   * OpenSSL reports one problem of a certificate, and an expired one may have others: so everything but its end is verified here.
   * That the peer holds the key was proven by the handshake.
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
    const expired = peer?.kind === "anonymous" ? peer.expired : undefined;
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
      // grpc-js throws when the connection is already gone.
      return undefined;
    }
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.peer.kind === "anonymous") {
      this.#anonymous.delete(connection.peer.remoteAddress);
      this.#problems.delete(connection.peer.remoteAddress);
    }
  }
}

/** `CERT_HAS_EXPIRED` by the host's clock, `EXPIRED` by ours. */
function isExpiry(verdict: unknown): boolean {
  return verdict === "CERT_HAS_EXPIRED" || verdict === "EXPIRED";
}

function addressOf(socket: TLSSocket): string {
  return `${socket.remoteAddress}:${socket.remotePort}`;
}
