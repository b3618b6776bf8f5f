import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import { http2StreamOf } from "@forage/identity/http2-stream";
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { CoordinatorError } from "../errors.ts";
import { assertMayCall } from "./access.ts";
import { type Caller, callerName } from "./caller.ts";
import type { IdentifiableCall } from "./serve.ts";
import { PROVEN_STREAMS } from "./server-options.ts";
import { toServiceError } from "./status.ts";

export interface CallLimits {
  /** The most open calls of the whole port. */
  readonly maxCalls: number;
  /**
   * The most open calls of one client: of a token or a node over all its connections, or of one
   * anonymous connection.
   */
  readonly maxCallsPerClient: number;
  /** The most open calls without credentials on one connection. */
  readonly maxAnonymousPerConnection: number;
  /** The most open calls without credentials from one address. */
  readonly maxAnonymousPerAddress: number;
  /**
   * The number of calls without credentials, accepted or refused, after which a connection is
   * closed.
   */
  readonly maxAnonymousCalls: number;
  /** The size limit of a call without credentials. */
  readonly maxAnonymousBytes: number;
  /**
   * The size limit of a call from a node whose certificate is no longer accepted. Its hello lists
   * its pods.
   */
  readonly maxRefusedNodeBytes: number;
  /** The limit of the time from a call's headers to its first complete message. */
  readonly firstMessageMs: number;
}

export const DEFAULT_CALL_LIMITS: CallLimits = {
  /** An open call uses about 20 KB: 2 GB in all. */
  maxCalls: 100_000,
  /**
   * This suffices for a proxy with 5,000 services, or a node's relay for all its pods, and for ten
   * such clients at a time.
   */
  maxCallsPerClient: 10_000,
  /** A joining host makes one call at a time. */
  maxAnonymousPerConnection: 4,
  /** Hosts behind one address may join together; their calls take milliseconds. */
  maxAnonymousPerAddress: 64,
  /**
   * A person with an expired token tries a few times. Beyond this, each attempt costs the client a
   * TLS handshake.
   */
  maxAnonymousCalls: 64,
  /** A join request has about 2 KB. */
  maxAnonymousBytes: 64 * 1024,
  /** The limit of any message. Only hosts that once joined this cluster can send such a call. */
  maxRefusedNodeBytes: 4 * 1024 * 1024,
  /** A manifest of 4 MB over a link of 1 Mbit/s takes 34 s. */
  firstMessageMs: 60_000,
};

/**
 * The same limit for anonymous callers. It is shorter because they may send only a small message.
 */
const ANONYMOUS_FIRST_MESSAGE_MS = 10_000;

export interface AdmissionOptions {
  readonly identify: (call: IdentifiableCall) => Caller;
  /** Returns the address of the client. Default: the address of the connection's peer. */
  readonly peerOf?: (call: IdentifiableCall) => string;
  /**
   * Called after the first call of a connection whose credentials were accepted. The connection
   * then no longer counts as anonymous, and may have more streams. Undefined if connections have
   * these rights from the start.
   */
  readonly onProven?: (call: ServerInterceptingCallInterface) => void;
  /** Called when a call ends with OK. */
  readonly onServed?: (method: string, call: ServerInterceptingCallInterface) => void;
  readonly observe?: (method: string, code: number, seconds: number) => void;
  /** Called for each call that is refused before its request was read. */
  readonly onRefused?: (method: string, peer: string, code: number, message: string) => void;
  /** Returns the client to which a call is attributed. Default: the name of the caller. */
  readonly clientOf?: (caller: Caller, peer: string) => string;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  readonly limits?: Partial<CallLimits>;
}

interface Refused {
  readonly path: string;
  readonly peer: string;
  readonly call: ServerInterceptingCallInterface;
  readonly stream: ServerHttp2Stream;
}

/** A call of a connection that is not served by grpc-js. */
export interface ProvenCall {
  readonly path: string;
  readonly call: IdentifiableCall;
  /** Ends the call, because its first message did not arrive in time. */
  readonly late: (error: CoordinatorError) => void;
}

/** A call that was admitted. */
export interface AdmittedCall {
  /** Must be called at the first message, which may be late otherwise. */
  readonly received: () => void;
  /** Must be called once, when the call's stream has closed. */
  readonly closed: () => void;
}

interface AnonymousConnection {
  open: number;
  calls: number;
}

/**
 * Decides by a call's headers whether the call may start, before any byte of its message is read. A
 * refused call is reset, so that it holds no resources even if its client never ends its side of
 * the stream.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #limits: CallLimits;
  readonly #proven = new WeakSet<Http2Session>();
  readonly #anonymous = new WeakMap<Http2Session, AnonymousConnection>();
  /** Keyed by the metadata, the one object that interceptors and handlers of a call share. */
  readonly #streams = new WeakMap<Metadata, ServerHttp2Stream>();
  readonly #openOfClient = new Map<string, number>();
  #open = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_CALL_LIMITS, ...options.limits };
  }

  get openCalls(): number {
    return this.#open;
  }

  /** The number of clients with open calls. */
  get clients(): number {
    return this.#openOfClient.size;
  }

  /** Returns the HTTP/2 stream of an admitted call. */
  readonly streamOf = (metadata: Metadata): ServerHttp2Stream | undefined => this.#streams.get(metadata);

  /**
   * Admits a call of a connection with a certificate of this cluster, whose requests need no limit of
   * bytes. Throws the error that refuses the call.
   */
  admitProven({ path, call, late }: ProvenCall): AdmittedCall {
    const peer = this.#options.peerOf?.(call) ?? call.getPeer();
    let uncount: () => void;
    try {
      const caller = this.#options.identify(call);
      if (caller.type === "anonymous") assertMayCall(caller, path, undefined);
      uncount = this.#count(caller, peer, undefined);
    } catch (error) {
      this.#noteRefusal(path, peer, error);
      throw error;
    }
    const { firstMessageMs } = this.#limits;
    let cancel: (() => void) | undefined = this.#options.schedule(firstMessageMs, () => {
      const error = tooLate(firstMessageMs);
      this.#noteRefusal(path, peer, error);
      late(error);
    });
    // A stream lasts for weeks, and should not keep the timer.
    const received = (): void => {
      cancel?.();
      cancel = undefined;
    };
    return {
      received,
      closed: () => {
        received();
        uncount();
      },
    };
  }

  /** The interceptor of the port. It must be the first one. */
  readonly interceptor: ServerInterceptor = (method, call) =>
    new ServerInterceptingCall(call, {
      sendStatus: (given, next) => {
        if (given.code === status.OK) this.#options.onServed?.(method.path, call);
        next(given);
      },
      start: (next) => {
        let received = (): void => {};
        next({
          onReceiveMetadata: (metadata, proceed) => {
            const admitted = this.#admit(method.path, call, metadata);
            if (admitted === undefined) return;
            received = admitted;
            proceed(metadata);
          },
          onReceiveMessage: (message, proceed) => {
            // For a single request, the handler runs once the client has ended its side, not at the
            // message.
            if (method.requestStream) received();
            proceed(message);
          },
          onReceiveHalfClose: (proceed) => {
            received();
            proceed();
          },
          onCancel: () => received(),
        });
      },
    });

  /**
   * Admits or refuses a call. Returns a function to call at the first message, or undefined if the
   * call was refused.
   */
  #admit(path: string, call: ServerInterceptingCallInterface, metadata: Metadata): (() => void) | undefined {
    const stream = http2StreamOf(call);
    const identifiable = {
      metadata,
      getAuthContext: () => call.getAuthContext(),
      getPeer: () => call.getPeer(),
    };
    const peer = this.#options.peerOf?.(identifiable) ?? call.getPeer();
    const refuse = (error: unknown): undefined => this.#refuse({ path, peer, call, stream }, error);
    try {
      const caller = this.#options.identify(identifiable);
      const isAnonymous = caller.type === "anonymous";
      const hasNone = hasNoCredentials(caller);
      if (hasNone && caller.forwarded !== true) this.#limitCalls(stream);
      // Roles and namespaces are checked with the request. A caller without any credentials is
      // refused before the request is read.
      if (isAnonymous) assertMayCall(caller, path, undefined);
      stream.once("close", this.#count(caller, peer, stream.session));
      if (hasNone) limitBytes(stream, this.#maxBytes(caller), refuse);
      else this.#prove(call, stream);
      this.#streams.set(metadata, stream);
      const waitMs = hasNone
        ? Math.min(ANONYMOUS_FIRST_MESSAGE_MS, this.#limits.firstMessageMs)
        : this.#limits.firstMessageMs;
      return this.#options.schedule(waitMs, () => refuse(tooLate(waitMs)));
    } catch (error) {
      return refuse(error);
    }
  }

  /**
   * Counts an open call. Returns a function that ends it. Without a session, the connection has accepted credentials.
   */
  #count(caller: Caller, peer: string, session: Http2Session | undefined): () => void {
    const { maxCalls, maxCallsPerClient, maxAnonymousPerAddress } = this.#limits;
    if (this.#open >= maxCalls) throw exhausted("this coordinator", maxCalls);
    const hasNone = hasNoCredentials(caller);
    const isAlone = hasNone && caller.forwarded !== true;
    const anonymous = isAlone ? this.#anonymousConnection(session) : undefined;
    if (anonymous !== undefined && anonymous.open >= this.#limits.maxAnonymousPerConnection)
      throw exhausted("this connection without credentials", this.#limits.maxAnonymousPerConnection);
    const client = this.#clientOf(caller, peer);
    const open = this.#openOfClient.get(client) ?? 0;
    const limit = hasNone ? maxAnonymousPerAddress : maxCallsPerClient;
    if (open >= limit) throw exhausted(client, limit);
    this.#open += 1;
    this.#openOfClient.set(client, open + 1);
    if (anonymous !== undefined) anonymous.open += 1;
    return () => {
      this.#open -= 1;
      if (anonymous !== undefined) anonymous.open -= 1;
      const left = (this.#openOfClient.get(client) ?? 1) - 1;
      if (left === 0) this.#openOfClient.delete(client);
      else this.#openOfClient.set(client, left);
    };
  }

  #clientOf(caller: Caller, peer: string): string {
    if (this.#options.clientOf !== undefined) return this.#options.clientOf(caller, peer);
    if (caller.coordinator !== undefined) return `coordinator ${caller.coordinator}`;
    return caller.type === "anonymous"
      ? `address ${peer.slice(0, peer.lastIndexOf(":"))}`
      : callerName(caller);
  }

  #anonymousConnection(session: Http2Session | undefined): AnonymousConnection | undefined {
    if (session === undefined) return undefined;
    const known = this.#anonymous.get(session);
    if (known !== undefined) return known;
    const connection = { open: 0, calls: 0 };
    this.#anonymous.set(session, connection);
    return connection;
  }

  /** Closes a connection after too many calls without credentials. */
  #limitCalls(stream: ServerHttp2Stream): void {
    const connection = this.#anonymousConnection(stream.session);
    if (connection === undefined) return;
    connection.calls += 1;
    if (connection.calls > this.#limits.maxAnonymousCalls) stream.session?.destroy();
  }

  #prove(call: ServerInterceptingCallInterface, { session }: ServerHttp2Stream): void {
    const { onProven } = this.#options;
    if (onProven === undefined || session === undefined || this.#proven.has(session)) return;
    this.#proven.add(session);
    session.settings({ maxConcurrentStreams: PROVEN_STREAMS });
    onProven(call);
  }

  #maxBytes({ refusedNode }: Caller): number {
    return refusedNode === undefined ? this.#limits.maxAnonymousBytes : this.#limits.maxRefusedNodeBytes;
  }

  #refuse({ path, peer, call, stream }: Refused, error: unknown): undefined {
    const { code, details, metadata } = this.#noteRefusal(path, peer, error);
    call.sendStatus({ code, details, metadata: metadata ?? null });
    stream.close(constants.NGHTTP2_NO_ERROR);
  }

  #noteRefusal(path: string, peer: string, error: unknown): ServiceError {
    const refusal = toServiceError(error);
    this.#options.observe?.(path, refusal.code, 0);
    this.#options.onRefused?.(path, peer, refusal.code, refusal.details);
    return refusal;
  }
}

/**
 * Reports whether the caller has no credentials at all. Coordinators have no rights of their own,
 * but they authenticate.
 */
function hasNoCredentials({ type, coordinator }: Caller): boolean {
  return type === "anonymous" && coordinator === undefined;
}

/** Ends a call if its message exceeds the limit while it arrives. */
function limitBytes(stream: ServerHttp2Stream, maxBytes: number, refuse: (error: unknown) => void): void {
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    if (bytes > maxBytes) return;
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    refuse(
      new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `a request without credentials may have at most ${maxBytes} bytes`,
      ),
    );
  });
}

function tooLate(waitMs: number): CoordinatorError {
  return new CoordinatorError("DEADLINE_EXCEEDED", `no complete request arrived within ${waitMs / 1000} s`);
}

/** Returns the error for a call beyond a limit. */
export function exhausted(what: string, limit: number): CoordinatorError {
  return new CoordinatorError(
    "RESOURCE_EXHAUSTED",
    `${what} has ${limit} open calls already: end some, or try again later`,
  );
}
