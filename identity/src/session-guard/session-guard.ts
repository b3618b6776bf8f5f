import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Server as GrpcServer } from "@grpc/grpc-js";
import { InTurn } from "../in-turn.ts";
import { checkStreams, onSession, sessionSourceOf } from "./grpc-sessions.ts";
import type { Offenders } from "./offenders.ts";
import { RateBudget } from "./rate-budget.ts";
import { PACED_RESETS, PROVEN_RESETS, QUICK_RESET_MS, RESETS, SessionLimits } from "./session-limits.ts";
import { Silence, type SilenceLimits } from "./silence.ts";

export { Offenders } from "./offenders.ts";
export { PacedStarts } from "./paced-starts.ts";
export type { SilenceLimits } from "./silence.ts";

/**
 * `RESETS`: too many streams that were opened and reset at once. `UNPROVEN`: too many streams without accepted
 * credentials. `PINGS`, `SETTINGS`: too many such frames. `OVERHEAD`: too many bytes without data, for example in
 * WINDOW_UPDATE or PRIORITY frames.
 */
export type Offence = "RESETS" | "UNPROVEN" | "PINGS" | "SETTINGS" | "OVERHEAD";

export interface SessionGuardOptions {
  readonly offenders: Offenders;
  readonly monotonicMs: () => number;
  /** The number of streams that a connection may open before `prove` is called for it. Default: no limit. */
  readonly maxUnprovenStreams?: number;
  /** If set, silent connections are sent a PING, and closed if they don't answer. Default: grpc-js does it. */
  readonly silence?: SilenceLimits;
  /** Called for each offence, for logs and metrics. Must not throw. */
  readonly onOffence?: (remoteAddress: string, offence: Offence) => void;
}

interface Guarded {
  readonly session: ServerHttp2Session;
  readonly address: string;
  /** The connection's socket, which also counts its bytes. */
  readonly socket: ServerHttp2Session["socket"];
  readonly limits: SessionLimits;
  readonly silence: Silence | undefined;
  resets: RateBudget;
  /** The open streams younger than `QUICK_RESET_MS`, and some others, each with its start time. */
  readonly recent: Map<ServerHttp2Stream, number>;
  /** The size of `recent` at which old streams are removed from it. */
  sweepAt: number;
  isProven: boolean;
  opened: number;
}

/**
 * A client with credentials needs one stream to present them. With this limit, many connections of an attacker cost
 * less than its first one did.
 */
const PACED_UNPROVEN_STREAMS = 8;

/** The number of connections with accepted credentials that one check for overhead visits by default. */
const CHECKED_AT_ONCE = 1_000;

/** The minimum size of `recent` for a sweep, below which a sweep would cost more than the streams. */
const MIN_SWEEP = 32;

/**
 * Closes connections of a grpc-js server that cause disproportionate cost, before grpc-js handles their streams. The
 * peer gets GOAWAY with ENHANCE_YOUR_CALM, and its address is paced. Streams that arrived in the same packet reach no
 * handler.
 */
export class SessionGuard {
  readonly #options: SessionGuardOptions;
  readonly #sessions = new WeakMap<object, Guarded>();
  readonly #byPeer = new Map<string, Guarded>();
  readonly #unproven = new Set<Guarded>();
  readonly #proven = new Set<Guarded>();
  readonly #checked = new InTurn(this.#proven);
  /** The open connections that started while their address was paced. */
  readonly #paced = new Set<Guarded>();

  /** Must be called after `server.createConnectionInjector`. */
  constructor(server: GrpcServer, options: SessionGuardOptions) {
    this.#options = options;
    const source = sessionSourceOf(server);
    onSession(source, (session) => this.#enter(session));
    checkStreams(source, (stream) => this.#mayStart(stream));
  }

  /** The number of open connections. */
  get size(): number {
    return this.#byPeer.size;
  }

  /**
   * Removes the limit of streams from the call's connection and raises its limit of resets. Called once the
   * connection's credentials are accepted.
   */
  prove(call: { getPeer(): string }): void {
    const guarded = this.#byPeer.get(call.getPeer());
    if (guarded === undefined || guarded.isProven) return;
    this.#unproven.delete(guarded);
    this.#proven.add(guarded);
    guarded.isProven = true;
    guarded.resets = new RateBudget(PROVEN_RESETS, this.#options.monotonicMs());
  }

  /**
   * Closes connections that sent too many bytes without data since their last check, and those whose peer is gone. To be
   * called about twice a second. Visits up to `atOnce` of those with accepted credentials, in turn.
   */
  checkOverhead(atOnce = CHECKED_AT_ONCE): void {
    this.#check(this.#unproven);
    this.#check(this.#checked.next(atOnce));
  }

  /**
   * Does the same for connections of addresses that offended before. They are few, so this may be called far more
   * often.
   */
  checkPacedOverhead(): void {
    if (this.#paced.size > 0) this.#check(this.#paced);
  }

  #check(all: Iterable<Guarded>): void {
    const nowMs = this.#options.monotonicMs();
    for (const guarded of all) {
      const { session, socket, limits } = guarded;
      if (session.destroyed) continue;
      if (limits.overhead(nowMs, socket)) this.#checkSilence(guarded, nowMs);
      else this.#cut(guarded, "OVERHEAD");
    }
  }

  #checkSilence({ session, limits, silence }: Guarded, nowMs: number): void {
    const step = silence?.visit(nowMs, limits.receivedBytes);
    if (step === "probe") session.ping(() => {});
    else if (step === "close") session.destroy();
  }

  #enter(session: ServerHttp2Session): void {
    const { socket } = session;
    const { remoteAddress = "", remotePort } = socket;
    const { offenders, monotonicMs, silence } = this.#options;
    const nowMs = monotonicMs();
    const isPaced = offenders.isPaced(remoteAddress, nowMs);
    const guarded = {
      session,
      socket,
      address: remoteAddress,
      limits: new SessionLimits(nowMs),
      silence: silence && new Silence(silence, nowMs),
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
      // The stream has no listener yet, and an error event without a listener would end the process.
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
   * Counts the streams that the peer has reset. Their `close` events are only emitted after the whole packet, when a
   * thousand streams may already have reached their handlers.
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
    // Resets by this side, and streams that ended normally, have NO_ERROR.
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

/** Counts the data frames of a stream. A `data` listener would start the flow before grpc-js reads. */
function countData(stream: ServerHttp2Stream, limits: SessionLimits): void {
  limits.streamOpened();
  const push = stream.push;
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk instanceof Uint8Array) limits.dataReceived(chunk.length);
    return push.call(stream, chunk, encoding);
  };
}
