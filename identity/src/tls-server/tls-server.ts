import type { X509Certificate } from "node:crypto";
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { createServer as createTlsServer, type Server as RawTlsServer, type TLSSocket } from "node:tls";
import { type ConnectionInjector, type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { addressGroup } from "../address-group.ts";
import { IdentityError } from "../error.ts";
import type { PeerIdentity } from "../peer-identity.ts";
import { Offenders, SessionGuard } from "../session-guard/session-guard.ts";
import { AnonymousShare } from "./anonymous-share.ts";
import { keyOf } from "./connection-key.ts";
import { onFirstBytes } from "./first-bytes.ts";
import { HandshakeGate } from "./handshake-gate.ts";
import { LapsingConnections } from "./lapsing-connections.ts";
import { listenOn } from "./listen-on.ts";
import { authoritiesOf, secureContextOptions, type TlsMaterial } from "./material.ts";
import { type Connection, type LapsedConnection, type Peer, type PeeredCall, Peers } from "./peers.ts";
import { SweepPace } from "./sweep-pace.ts";
import { DEFAULT_TLS_LIMITS, type TlsLimits } from "./tls-limits.ts";
import type { RefusalReason, TlsServerOptions, TlsServerStats } from "./tls-options.ts";
import { UnusedHandshakes } from "./unused-handshakes.ts";

export { addressGroup } from "../address-group.ts";
export { AnonymousShare } from "./anonymous-share.ts";
export type { TlsMaterial } from "./material.ts";
export type { AnonymousPeer, AuthenticatedPeer, CertificateProblem, Peer, PeeredCall } from "./peers.ts";
export { DEFAULT_TLS_LIMITS, type TlsLimits } from "./tls-limits.ts";
export type { TlsServerEvent, TlsServerOptions, TlsServerStats } from "./tls-options.ts";

/** The interval of checks for expiry, revocation and overhead. */
const SWEEP_MS = 400;
/** The interval of checks for overhead of addresses that offended before. It bounds what a flood can do. */
const PACED_SWEEP_MS = 50;

/**
 * Serves a grpc-js server on one TLS port for clients with and without a certificate. grpc-js itself either requires a
 * certificate or ignores it, so TLS ends here, and the decrypted connections are injected.
 *
 * ```ts
 * const tls = new TlsServer({ material, nowMs: Date.now, isRevoked: (id) => denylist.has(id) });
 * const server = new grpc.Server({ interceptors: [authentication((call) => tls.peerOf(call))] });
 * await tls.listen(server, { host: "0.0.0.0", port: 7600 });
 * ```
 *
 * A client certificate is requested and optional. One that does not verify makes an anonymous peer with `certificateProblem`,
 * which lets a handler report the reason. Sessions are never resumed: each connection's certificate is verified.
 */
export class TlsServer {
  readonly #options: TlsServerOptions;
  readonly #limits: TlsLimits;
  readonly #peers: Peers;
  readonly #gate: HandshakeGate<Socket>;
  readonly #anonymous: AnonymousShare<Connection>;
  readonly #users = new Set<Connection>();
  readonly #unused: UnusedHandshakes;
  /** The raw sockets of connections without credentials. */
  readonly #rawOf = new WeakMap<Connection, Socket>();
  readonly #pending = new Map<string, Socket>();
  readonly #raw = new Set<Socket>();
  /** The timers of connections before the end of their handshakes. */
  readonly #timers = new WeakMap<Socket, NodeJS.Timeout>();
  readonly #lapsing: LapsingConnections;
  readonly #tls: RawTlsServer;
  #authorities: readonly X509Certificate[];
  readonly #net: NetServer;
  #injector: ConnectionInjector | undefined;
  readonly #offenders = new Offenders();
  readonly #monotonicMs: () => number;
  #guard: SessionGuard | undefined;
  #retry: NodeJS.Timeout | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #pacedSweep: NodeJS.Timeout | undefined;
  #closing = false;

  /** Throws as `reload` does. */
  constructor(options: TlsServerOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_TLS_LIMITS, ...options.limits };
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#peers = new Peers({
      isRevoked: options.isRevoked ?? (() => false),
      nowMs: options.nowMs,
      cluster: options.cluster,
      expiredGraceMs: options.expiredGraceMs,
      isIssued: (certificate) => this.#isIssued(certificate),
    });
    this.#lapsing = new LapsingConnections(this.#peers);
    this.#authorities = authoritiesOf(options.material);
    this.#gate = new HandshakeGate(this.#limits);
    this.#anonymous = new AnonymousShare(this.#limits);
    this.#unused = new UnusedHandshakes({
      rate: this.#limits.unusedHandshakes,
      monotonicMs: this.#monotonicMs,
      onExcess: (remoteAddress) => {
        this.#offenders.offend(remoteAddress, this.#monotonicMs());
        this.#options.onEvent?.({ type: "cut", remoteAddress, reason: "HANDSHAKES" });
      },
    });
    this.#tls = createTlsServer({
      ...secureContextOptions(options.material),
      requestCert: true,
      rejectUnauthorized: false,
      // With `ALPNProtocols`, each connection keeps a copy from Buffer's pool, and with it 8 kB of the pool.
      ALPNCallback: ({ protocols }) => protocols.find((protocol) => protocol === "h2"),
      handshakeTimeout: this.#limits.handshakeMs,
    });
    this.#tls.on("secureConnection", (socket) => this.#secured(socket));
    this.#tls.on("tlsClientError", (error, socket) => this.#failed(error, socket));
    this.#net = createNetServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#accept(socket));
  }

  /**
   * Listens on a port; with port 0 the system chooses one. Must be called only once. @throws IdentityError
   * LISTEN_FAILED.
   */
  async listen(
    server: GrpcServer,
    at: { readonly host: string; readonly port: number },
  ): Promise<{ readonly host: string; readonly port: number }> {
    if (this.#injector !== undefined)
      throw new IdentityError("INVALID_ARGUMENT", "this server listens already");
    this.#injector = server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#guard = new SessionGuard(server, {
      offenders: this.#offenders,
      monotonicMs: this.#monotonicMs,
      maxUnprovenStreams: this.#limits.maxAnonymousStreams,
      silence: this.#limits.silence,
      onOffence: (remoteAddress, reason) => this.#options.onEvent?.({ type: "cut", remoteAddress, reason }),
    });
    await listenOn(this.#net, at);
    this.#net.removeAllListeners("error").on("error", () => {});
    const pace = new SweepPace();
    this.#sweep = setInterval(() => {
      this.sweepLapsed();
      this.#guard?.checkOverhead(pace.visits(this.#peers.size));
    }, SWEEP_MS).unref();
    this.#pacedSweep = setInterval(() => this.#guard?.checkPacedOverhead(), PACED_SWEEP_MS).unref();
    const { address, port } = this.#net.address() as AddressInfo;
    return { host: address, port };
  }

  /** Returns the peer of a call. Works in handlers and interceptors, also while the connection closes. Never throws. */
  peerOf(call: PeeredCall): Peer {
    return this.#peers.of(call);
  }

  /**
   * Marks the call's connection as one with accepted credentials. It then has no limit of calls, no longer counts as
   * anonymous, and has no short lifetime.
   */
  prove(call: Pick<PeeredCall, "getPeer">): void {
    this.#guard?.prove(call);
    this.forgive(call);
    const connection = this.#peers.anonymousConnection(call);
    if (connection === undefined || !this.#anonymous.remove(connection, groupOf(connection))) return;
    if (this.#users.size >= this.#limits.maxUsers) {
      this.#refuse(connection.socket, "USERS");
      return;
    }
    this.#users.add(connection);
  }

  /**
   * Records that a call without credentials, such as a join, was legitimate. The handshake of its connection then
   * doesn't count against its address.
   */
  forgive(call: Pick<PeeredCall, "getPeer">): void {
    const connection = this.#peers.anonymousConnection(call);
    const raw = connection && this.#rawOf.get(connection);
    if (raw !== undefined) this.#unused.use(raw);
  }

  /**
   * Replaces the material for new handshakes. Open connections stay open. The old material remains active if this
   * throws PAIR_MISMATCH or CERTIFICATE_INVALID. Removing an authority from `clientCaPem` doesn't close connections
   * with its certificates; they are closed when the certificates expire.
   */
  reload(material: TlsMaterial): void {
    this.#tls.setSecureContext(secureContextOptions(material));
    this.#authorities = authoritiesOf(material);
  }

  /**
   * Closes all connections that `isRevoked` denies or whose certificate has expired, without waiting for the next
   * sweeps. Returns their number.
   */
  closeLapsed(): number {
    return this.#close([...this.#peers.lapsed()]);
  }

  /**
   * Closes the connections that were already lapsed at their last visit, and returns their number. Between the two
   * visits handlers end their streams, and the peer receives the reason. Closing a connection at once would lose it.
   */
  sweepLapsed(atOnce?: number): number {
    return this.#close(this.#lapsing.due(atOnce));
  }

  /** Limits the rate at which new connections of an address start, after one was closed for abuse. */
  pace(remoteAddress: string): void {
    this.#offenders.offend(remoteAddress, this.#monotonicMs());
  }

  /** Makes the next sweep visit all open connections that match, such as those of a revoked node, out of turn. */
  recheck(matches: (identity: PeerIdentity) => boolean): void {
    this.#lapsing.recheck(matches);
  }

  #close(lapsed: readonly LapsedConnection[]): number {
    for (const { connection, problem } of lapsed) this.#closeOne(connection.socket, connection.peer, problem);
    return lapsed.length;
  }

  /**
   * Closes the open connections that match, such as those of a removed node, and returns their number. The peers may
   * connect again.
   */
  disconnect(matches: (identity: PeerIdentity) => boolean, reason: string): number {
    let closed = 0;
    for (const connection of this.#peers.connections) {
      if (connection.peer.type !== "authenticated" || !matches(connection.peer.identity)) continue;
      this.#closeOne(connection.socket, connection.peer, reason);
      closed += 1;
    }
    return closed;
  }

  stats(): TlsServerStats {
    return {
      open: this.#peers.size,
      anonymous: this.#anonymous.size,
      users: this.#users.size,
      handshaking: this.#pending.size - this.#gate.waiting,
      waiting: this.#gate.waiting,
    };
  }

  /** Stops accepting connections, asks clients to disconnect, and after `graceMs` closes the remaining connections. */
  async close(graceMs = 0): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    clearInterval(this.#sweep);
    clearInterval(this.#pacedSweep);
    clearTimeout(this.#retry);
    const closed = new Promise<void>((resolve) => this.#net.close(() => resolve()));
    for (const socket of this.#pending.values()) socket.destroy();
    this.#injector?.destroy();
    const cut = setTimeout(() => {
      for (const socket of this.#raw) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(cut);
  }

  #isIssued(certificate: X509Certificate): boolean {
    const nowMs = this.#options.nowMs();
    return this.#authorities.some(
      (ca) =>
        ca.ca &&
        ca.validToDate.getTime() > nowMs &&
        certificate.checkIssued(ca) &&
        certificate.verify(ca.publicKey),
    );
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const key = keyOf(socket);
    if (key === undefined || this.#closing) socket.destroy();
    else if (this.#raw.size >= this.#limits.maxConnections) this.#refuse(socket, "CONNECTIONS");
    else if (!this.#queue(socket)) this.#refuse(socket, "WAITING");
    else this.#enqueue(key, socket);
  }

  #queue(socket: Socket): boolean {
    const { remoteAddress = "" } = socket;
    const isPaced = this.#offenders.isPaced(remoteAddress, this.#monotonicMs());
    return this.#gate.add(socket, remoteAddress, isPaced ? this.#limits.maxWaitingPaced : undefined);
  }

  #enqueue(key: string, socket: Socket): void {
    this.#raw.add(socket);
    this.#pending.set(key, socket);
    this.#setTimer(socket, this.#limits.waitMs, () => this.#refuse(socket, "WAITING"));
    // The only listener for all of a connection's state, because each takes 250 bytes for as long as the connection.
    socket.on("close", () => {
      this.#raw.delete(socket);
      this.#settle(key, socket);
      this.#unused.end(socket);
    });
    this.#startNext();
  }

  #startNext(): void {
    const nowMs = this.#monotonicMs();
    for (const socket of this.#gate.next((address) => this.#offenders.tryStart(address, nowMs))) {
      this.#setTimer(socket, this.#limits.placeMs, () => this.#release(socket));
      this.#unused.start(socket, socket.remoteAddress ?? "");
      onFirstBytes(socket, this.#limits.handshakeMs, (error) => {
        if (error === undefined) this.#tls.emit("connection", socket);
        else this.#failed(error, socket);
      });
    }
    if (this.#gate.waiting === 0 || this.#closing) return;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#startNext();
    }, this.#offenders.retryMs).unref();
  }

  #setTimer(socket: Socket, delayMs: number, run: () => void): void {
    clearTimeout(this.#timers.get(socket));
    this.#timers.set(socket, setTimeout(run, delayMs));
  }

  #release(socket: Socket): void {
    this.#gate.remove(socket);
    this.#startNext();
  }

  #settle(key: string, socket: Socket): void {
    clearTimeout(this.#timers.get(socket));
    this.#timers.delete(socket);
    if (this.#pending.get(key) === socket) this.#pending.delete(key);
    this.#release(socket);
  }

  #secured(socket: TLSSocket): void {
    socket.on("error", () => {});
    const key = keyOf(socket);
    const raw = key === undefined ? undefined : this.#pending.get(key);
    // The connection was closed between the handshake's last byte and now.
    if (key === undefined || raw === undefined) socket.destroy();
    else {
      this.#settle(key, raw);
      this.#admit(socket, raw);
    }
  }

  #admit(socket: TLSSocket, raw: Socket): void {
    if (socket.alpnProtocol !== "h2") {
      this.#refuse(socket, "PROTOCOL");
      return;
    }
    const connection = this.#peers.add(socket);
    const { peer } = connection;
    if (peer.type === "authenticated") {
      this.#unused.use(raw);
      if (this.#options.accept?.(socket, peer)) return;
    } else {
      this.#rawOf.set(connection, raw);
      this.#admitAnonymous(connection);
    }
    this.#injector?.injectConnection(socket);
    if (peer.type === "authenticated") this.#guard?.prove({ getPeer: () => peer.remoteAddress });
  }

  #admitAnonymous(connection: Connection): void {
    const { socket, peer } = connection;
    const address = groupOf(connection);
    const replaced = this.#anonymous.add(connection, address);
    if (replaced !== undefined) this.#refuse(replaced.socket, "ANONYMOUS");
    const tooLong = setTimeout(() => {
      if (this.#anonymous.remove(connection, address)) this.#closeOne(socket, peer, "NO_CREDENTIALS");
    }, this.#limits.anonymousMs);
    socket.once("close", () => {
      clearTimeout(tooLong);
      this.#anonymous.remove(connection, address);
      this.#users.delete(connection);
    });
  }

  #failed(error: Error & { code?: string }, socket: Socket): void {
    this.#options.onEvent?.({
      type: "handshake-failed",
      remoteAddress: keyOf(socket) ?? "unknown",
      reason: error.code ?? error.message,
    });
    socket.destroy();
  }

  #refuse(socket: Socket, reason: RefusalReason): void {
    this.#options.onEvent?.({ type: "refused", remoteAddress: keyOf(socket) ?? "unknown", reason });
    socket.destroy();
  }

  #closeOne(socket: TLSSocket, peer: Peer, reason: string): void {
    this.#options.onEvent?.({ type: "closed", peer, reason });
    socket.destroy();
  }
}

function groupOf({ peer: { remoteAddress } }: Connection): string {
  return addressGroup(remoteAddress.slice(0, remoteAddress.lastIndexOf(":")));
}
