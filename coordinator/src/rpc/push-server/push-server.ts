import type { Duplex } from "node:stream";
import { CoordinatorError } from "../../errors.ts";
import type { ConnectionError } from "../../http2/connection-error.ts";
import type { RequestHead } from "../../http2/request-head.ts";
import type { ServerStream } from "../../http2/server-stream.ts";
import { SocketConnection } from "../../http2/socket-connection.ts";
import { exhausted } from "../admission.ts";
import type { CallObserver } from "../call-observer.ts";
import type { Caller } from "../caller.ts";
import { toServiceError } from "../status.ts";
import { errorTrailers, httpRefusal, httpStatus } from "./grpc-head.ts";
import { PushedCall } from "./pushed-call.ts";
import type { PushedMethod } from "./pushed-method.ts";

export interface PushServerOptions extends CallObserver {
  /** The caller of all calls to this server. */
  readonly caller: Caller;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Open calls of all connections. */
  readonly maxCalls: number;
  /** Open calls of one connection. */
  readonly maxCallsPerConnection: number;
  /** Streams of one connection that the protocol allows. Above the former, so that clients learn why a call is refused. */
  readonly maxStreams: number;
  /** Time from a call's headers to its complete request. */
  readonly firstMessageMs: number;
  /** A connection is ended because of its peer. Must not throw. */
  readonly onFailure: (remoteAddress: string, error: ConnectionError) => void;
  /** Streams were reset because their clients gave no window for long. */
  readonly onStalled: (streams: number) => void;
}

/** The origin of a connection. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  /** Its address was cut before, so that it may do less. */
  readonly isPaced: boolean;
}

interface OpenCalls {
  readonly peer: string;
  open: number;
}

/** The interval at which calls and connections are checked for what takes too long. */
const CHECK_MS = 5_000;

/**
 * A gRPC server over our own HTTP/2 for methods that push: one request, then a stream of responses.
 */
export class PushServer {
  readonly #options: PushServerOptions;
  readonly #methods = new Map<string, PushedMethod>();
  readonly #connections = new Set<SocketConnection>();
  /** Calls whose streams are open, oldest first. */
  readonly #calls = new Set<PushedCall>();
  /** The calls without a complete request, with the times of their starts, oldest first. */
  readonly #waiting = new Map<PushedCall, number>();
  #cancelCheck: () => void;
  #onEmpty = (): void => {};

  constructor(methods: readonly PushedMethod[], options: PushServerOptions) {
    this.#options = options;
    for (const method of methods) this.#methods.set(method.path, method);
    this.#cancelCheck = options.schedule(CHECK_MS, () => this.#check());
  }

  get openCalls(): number {
    return this.#calls.size;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Serves a connection of TCP, or of TLS after its handshake with ALPN `h2`. */
  accept(socket: Duplex, { address, port, isPaced }: Peer): void {
    const { monotonicMs, schedule, maxStreams, onFailure } = this.#options;
    const calls: OpenCalls = { peer: `${address}:${port}`, open: 0 };
    const connection = new SocketConnection(socket, {
      monotonicMs,
      schedule,
      maxStreams,
      isPaced,
      onRequest: (stream, head) => this.#begin(stream, head, calls),
      onFailure: (error) => onFailure(address, error),
      onClose: () => {
        this.#connections.delete(connection);
        if (this.#connections.size === 0) this.#onEmpty();
      },
    });
    this.#connections.add(connection);
  }

  /** Ends all calls with OK. */
  finishCalls(): void {
    for (const call of [...this.#calls]) call.finish();
  }

  /** Asks clients to leave, and cuts those off that are still there after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#cancelCheck();
    this.finishCalls();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.schedule(graceMs, resolve);
    this.#onEmpty = resolve;
    for (const connection of this.#connections) connection.leave();
    if (this.#connections.size === 0) resolve();
    await promise;
    cancel();
    for (const connection of this.#connections) connection.destroy();
  }
  #begin(stream: ServerStream, head: RequestHead, from: OpenCalls): void {
    const { log, observe, monotonicMs, caller, schedule } = this.#options;
    const refusal = httpRefusal(head);
    if (refusal !== undefined) {
      stream.end(httpStatus(refusal));
      return;
    }
    const method = this.#methods.get(head.path);
    const problem = method === undefined ? notServed(head.path) : this.#excess(from);
    if (method === undefined || problem !== undefined) {
      observe?.(method?.path ?? "unknown", toServiceError(problem).code, 0);
      stream.end(errorTrailers(problem, true));
      return;
    }
    const observer = { log, monotonicMs, ...(observe !== undefined && { observe }) };
    const call = new PushedCall(stream, method, {
      ...observer,
      caller,
      schedule,
      peer: from.peer,
      onClose: () => {
        from.open -= 1;
        this.#calls.delete(call);
        this.#waiting.delete(call);
      },
    });
    from.open += 1;
    this.#calls.add(call);
    this.#waiting.set(call, monotonicMs());
    call.start(head);
  }

  /** Returns the refusal of one more call; undefined: there is room for it. */
  #excess({ peer, open }: OpenCalls): CoordinatorError | undefined {
    const { maxCalls, maxCallsPerConnection } = this.#options;
    if (this.#calls.size >= maxCalls) return exhausted("this coordinator", maxCalls);
    if (open >= maxCallsPerConnection) return exhausted(`the connection from ${peer}`, maxCallsPerConnection);
    return undefined;
  }

  #check(): void {
    const { schedule, monotonicMs, firstMessageMs, onStalled } = this.#options;
    this.#cancelCheck = schedule(CHECK_MS, () => this.#check());
    const nowMs = monotonicMs();
    for (const [call, startedMs] of this.#waiting) {
      if (!call.isWaiting) this.#waiting.delete(call);
      else if (nowMs - startedMs >= firstMessageMs) call.fail(late(firstMessageMs));
      else break;
    }
    let stalled = 0;
    for (const connection of [...this.#connections]) stalled += connection.check(nowMs);
    if (stalled > 0) onStalled(stalled);
  }
}

function notServed(path: string): CoordinatorError {
  return new CoordinatorError("UNIMPLEMENTED", `this port does not serve the method ${path.slice(0, 200)}`);
}

function late(limitMs: number): CoordinatorError {
  return new CoordinatorError("DEADLINE_EXCEEDED", `no complete request arrived within ${limitMs / 1000} s`);
}
