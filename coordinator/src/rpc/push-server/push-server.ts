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
  /** The caller of every call to this server. */
  readonly caller: Caller;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** The most open calls of all connections. */
  readonly maxCalls: number;
  /** The most open calls of one connection. */
  readonly maxCallsPerConnection: number;
  /**
   * The stream limit that is announced for one connection. It exceeds `maxCallsPerConnection`, so
   * that clients receive the reason why a call is refused.
   */
  readonly maxStreams: number;
  /** The limit of the time from a call's headers to its complete request. */
  readonly firstMessageMs: number;
  /** Called when a connection was closed because of an error of its peer. Must not throw. */
  readonly onFailure: (remoteAddress: string, error: ConnectionError) => void;
  /** Called when streams were reset because their clients granted no window for too long. */
  readonly onStalled: (streams: number) => void;
}

/** The origin of a connection. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  /**
   * Whether the connection's address caused failures before, so that stricter limits apply to it.
   */
  readonly isPaced: boolean;
}

interface OpenCalls {
  readonly peer: string;
  open: number;
}

/** The interval of checks for calls and connections that exceed a time limit. */
const CHECK_MS = 5_000;

/**
 * A gRPC server on our own HTTP/2 implementation, for methods with one request and a stream of
 * responses.
 */
export class PushServer {
  readonly #options: PushServerOptions;
  readonly #methods = new Map<string, PushedMethod>();
  readonly #connections = new Set<SocketConnection>();
  /** Calls with open streams, oldest first. */
  readonly #calls = new Set<PushedCall>();
  /** Calls without a complete request, with their start times, oldest first. */
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

  /** Serves a connection: plain TCP, or TLS after a handshake with ALPN `h2`. */
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

  /** Requests that clients disconnect, and closes the connections that remain after `graceMs`. */
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

  /** Returns the error that refuses one more call; undefined if the limits allow it. */
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
