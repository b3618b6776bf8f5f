import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Server as GrpcServer } from "@grpc/grpc-js";
import { InTurn } from "../in-turn.ts";
import { checkStreams, onSession, sessionSourceOf } from "./grpc-sessions.ts";
import type { Offenders } from "./offenders.ts";
import { RateBudget } from "./rate-budget.ts";
import { PACED_RESETS, PROVEN_RESETS, QUICK_RESET_MS, RESETS, SessionLimits } from "./session-limits.ts";

export { Offenders } from "./offenders.ts";
export { PacedStarts } from "./paced-starts.ts";

/**
 * `RESETS`: too many streams opened and reset at once. `UNPROVEN`: too many streams without accepted credentials. `PINGS`,
 * `SETTINGS`: too many such frames. `OVERHEAD`: too many bytes that carry no data, for example of WINDOW_UPDATE or PRIORITY frames.
 */
export type Offence = "RESETS" | "UNPROVEN" | "PINGS" | "SETTINGS" | "OVERHEAD";

export interface SessionGuardOptions {
  readonly offenders: Offenders;
  readonly monotonicMs: () => number;
  /** Streams that a connection may open before `prove` is called for it. Default: no limit. */
  readonly maxUnprovenStreams?: number;
  /** Called for each offence, for logs and metrics. Must not throw. */
  readonly onOffence?: (remoteAddress: string, offence: Offence) => void;
}

interface Guarded {
  readonly session: ServerHttp2Session;
  readonly address: string;
  /** The connection, which also counts its bytes. */
  readonly socket: ServerHttp2Session["socket"];
  readonly limits: SessionLimits;
  resets: RateBudget;
  /** Streams that are open and younger than `QUICK_RESET_MS`, and some others, each with the time of its start. */
  readonly recent: Map<ServerHttp2Stream, number>;
  /** The size of `recent` at which it is swept. */
  sweepAt: number;
  isProven: boolean;
  opened: number;
}

/** A client with credentials needs one stream to show them. Many connections of one attacker then cost less than the first. */
const PACED_UNPROVEN_STREAMS = 8;

/** Connections with credentials that one check for overhead visits. On a server of 5,000 each is checked every 2 s. */
const CHECKED_AT_ONCE = 1_000;

/** A sweep costs less than the streams that it counts. */
const MIN_SWEEP = 32;

/**
 * Cuts connections of a grpc-js server that cost far more than they are worth, before grpc-js sees their streams: the peer gets
 * GOAWAY with ENHANCE_YOUR_CALM, and its address is paced. Streams that arrived in the same packet reach no handler.
 */
export class SessionGuard {
  readonly #options: SessionGuardOptions;
  readonly #sessions = new WeakMap<object, Guarded>();
  readonly #byPeer = new Map<string, Guarded>();
  readonly #unproven = new Set<Guarded>();
  readonly #proven = new Set<Guarded>();
  readonly #checked = new InTurn(this.#proven);
  /** Open connections that started while their address was paced. */
  readonly #paced = new Set<Guarded>();

  /** Call after `server.createConnectionInjector`. */
  constructor(server: GrpcServer, options: SessionGuardOptions) {
    this.#options = options;
    const source = sessionSourceOf(server);
    onSession(source, (session) => this.#enter(session));
    checkStreams(source, (stream) => this.#mayStart(stream));
  }

  /** Connections that are open. */
  get size(): number {
    return this.#byPeer.size;
  }

  /** Lifts the limit of streams from the connection on which the call is made, and lets it reset more of them. */
  prove(call: { getPeer(): string }): void {
    const guarded = this.#byPeer.get(call.getPeer());
    if (guarded === undefined || guarded.isProven) return;
    this.#unproven.delete(guarded);
    this.#proven.add(guarded);
    guarded.isProven = true;
    guarded.resets = new RateBudget(PROVEN_RESETS, this.#options.monotonicMs());
  }

  /**
   * Cuts connections that sent too many bytes without data since their last check. Call about twice a second. Those with accepted
   * credentials are checked in turn.
   */
  checkOverhead(): void {
    this.#check(this.#unproven);
    this.#check(this.#checked.next(CHECKED_AT_ONCE));
  }

  /** The same for connections of addresses that were cut before. They are few, so that it may be called far more often. */
  checkPacedOverhead(): void {
    if (this.#paced.size > 0) this.#check(this.#paced);
  }

  #check(all: Iterable<Guarded>): void {
    const nowMs = this.#options.monotonicMs();
    for (const guarded of all)
      if (!guarded.session.destroyed && !guarded.limits.overhead(nowMs, guarded.socket))
        this.#cut(guarded, "OVERHEAD");
  }

  #enter(session: ServerHttp2Session): void {
    const { socket } = session;
    const { remoteAddress = "", remotePort } = socket;
    const { offenders, monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const isPaced = offenders.isPaced(remoteAddress, nowMs);
    const guarded = {
      session,
      socket,
      address: remoteAddress,
      limits: new SessionLimits(nowMs),
      resets: new RateBudget(isPaced ? PACED_RESETS : RESETS, nowMs),
      recent: new Map<ServerHttp2Stream, number>(),
      sweepAt: MIN_SWEEP,
      isProven: this.#options.maxUnprovenStreams === undefined,
      opened: 0,
    };
    const peer = `${remoteAddress}:${remotePort}`;
    this.#sessions.set(session, guarded);
    this.#byPeer.set(peer, guarded);
    (guarded.isProven ? this.#proven : this.#unproven).add(guarded);
    if (isPaced) this.#paced.add(guarded);
    session.once("close", () => {
      this.#unproven.delete(guarded);
      this.#proven.delete(guarded);
      this.#paced.delete(guarded);
      if (this.#byPeer.get(peer) === guarded) this.#byPeer.delete(peer);
    });
    this.#countFrames(guarded);
  }

  #countFrames(guarded: Guarded): void {
    const { session, socket, limits } = guarded;
    const { monotonicMs } = this.#options;
    session.on("ping", () => {
      if (!session.destroyed && !limits.ping(monotonicMs(), socket)) this.#cut(guarded, "PINGS");
    });
    session.on("remoteSettings", () => {
      if (!session.destroyed && !limits.settings(monotonicMs())) this.#cut(guarded, "SETTINGS");
    });
  }

  #mayStart(stream: ServerHttp2Stream): boolean {
    const { session } = stream;
    const guarded = session === undefined ? undefined : this.#sessions.get(session);
    if (guarded === undefined || session === undefined || session.destroyed) {
      // It has no listener yet, and without one an error of the stream would end the process.
      stream.on("error", () => {});
      return false;
    }
    guarded.opened += 1;
    const { monotonicMs } = this.#options;
    if (!guarded.isProven && guarded.opened > this.#maxUnproven(guarded)) this.#cut(guarded, "UNPROVEN");
    else if (guarded.recent.size >= guarded.sweepAt) this.#sweep(guarded);
    if (session.destroyed) {
      stream.on("error", () => {});
      return false;
    }
    guarded.recent.set(stream, monotonicMs());
    countData(stream, guarded.limits);
    stream.once("close", () => this.#count(guarded, stream));
    return true;
  }

  #maxUnproven({ address }: Guarded): number {
    const { maxUnprovenStreams = Number.POSITIVE_INFINITY, offenders, monotonicMs } = this.#options;
    const isPaced = offenders.isPaced(address, monotonicMs());
    return isPaced ? Math.min(PACED_UNPROVEN_STREAMS, maxUnprovenStreams) : maxUnprovenStreams;
  }

  /**
   * Counts the streams that the peer has reset. Their own `close` events come only when the whole packet has been processed, by
   * which time a thousand streams may have reached their handlers.
   */
  #sweep(guarded: Guarded): void {
    const nowMs = this.#options.monotonicMs();
    for (const [stream, openedMs] of guarded.recent) {
      if (stream.closed) this.#count(guarded, stream);
      else if (nowMs - openedMs >= QUICK_RESET_MS) guarded.recent.delete(stream);
    }
    guarded.sweepAt = Math.max(MIN_SWEEP, 2 * guarded.recent.size);
  }

  #count(guarded: Guarded, stream: ServerHttp2Stream): void {
    const openedMs = guarded.recent.get(stream);
    if (openedMs === undefined) return;
    guarded.recent.delete(stream);
    // Our own resets carry NO_ERROR, and so do streams that ended.
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR || guarded.session.destroyed) return;
    const nowMs = this.#options.monotonicMs();
    if (nowMs - openedMs < QUICK_RESET_MS && !guarded.resets.spend(nowMs)) this.#cut(guarded, "RESETS");
  }

  #cut({ session, address }: Guarded, offence: Offence): void {
    const { offenders, monotonicMs, onOffence } = this.#options;
    offenders.offend(address, monotonicMs());
    onOffence?.(address, offence);
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    session.destroy();
  }
}

/** A listener for data would make the stream flow before grpc-js reads it. */
function countData(stream: ServerHttp2Stream, limits: SessionLimits): void {
  limits.streamOpened();
  const push = stream.push;
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk instanceof Uint8Array) limits.dataReceived(chunk.length);
    return push.call(stream, chunk, encoding);
  };
}
