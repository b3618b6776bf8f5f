import type { Duplex } from "node:stream";
import type { PeeredCall } from "@forage/identity/tls-server";
import { CoordinatorError } from "../../errors.ts";
import type { ConnectionError } from "../../http2/connection-error.ts";
import type { RequestHead } from "../../http2/request-head.ts";
import type { ServerStream } from "../../http2/server-stream.ts";
import { SocketConnection } from "../../http2/socket-connection.ts";
import type { Admission, AdmittedCall } from "../admission.ts";
import { errorTrailers, httpRefusal, httpStatus } from "../push-server/grpc-head.ts";
import { MAX_MESSAGE_BYTES, PROVEN_STREAMS } from "../server-options.ts";
import { NodeCall } from "./node-call.ts";
import type { SharedServer } from "./served-methods.ts";

export interface NodeServerOptions {
  readonly methods: Pick<SharedServer, "methodOf">;
  readonly admission: Pick<Admission, "admitProven">;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Called when a connection was closed because of its peer. Must not throw. */
  readonly onFailure: (peer: string, error: ConnectionError) => void;
}

/** The interval of checks for silent connections. */
const CHECK_MS = 5_000;

/**
 * Serves the connections of nodes with the coordinator's own HTTP/2, which takes less memory and
 * processor time for an idle connection than that of Node.js and grpc-js. It serves the methods of a
 * server of grpc-js.
 */
export class NodeServer {
  readonly #options: NodeServerOptions;
  readonly #connections = new Set<SocketConnection>();
  #cancelCheck: () => void;
  #isLeaving = false;

  constructor(options: NodeServerOptions) {
    this.#options = options;
    this.#cancelCheck = options.schedule(CHECK_MS, () => this.#check());
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Serves a connection whose peer has a node's certificate, after the handshake. */
  accept(socket: Duplex, peer: PeeredCall): void {
    const { monotonicMs, schedule, onFailure } = this.#options;
    const connection = new SocketConnection(socket, {
      monotonicMs,
      schedule,
      maxStreams: PROVEN_STREAMS,
      isProven: true,
      // An agent's heartbeat has less than the bytes that other clients may not send all the time.
      smallDataBytes: 1,
      // A program in a container may read its input after any time.
      keepsStalled: true,
      onRequest: (stream, head) => this.#begin(stream, head, peer),
      onFailure: (error) => onFailure(peer.getPeer(), error),
      onClose: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    if (this.#isLeaving) connection.leave();
  }

  /** Requests that clients disconnect, now and in the future. Their connections close with their last call. */
  leave(): void {
    this.#isLeaving = true;
    this.#cancelCheck();
    for (const connection of this.#connections) connection.leave();
  }

  #begin(stream: ServerStream, head: RequestHead, peer: PeeredCall): void {
    const refusal = httpRefusal(head);
    if (refusal !== undefined) {
      stream.end(httpStatus(refusal));
      return;
    }
    const { methods, admission, nowMs, schedule } = this.#options;
    const served = methods.methodOf(head.path);
    if (served === undefined) {
      stream.end(errorTrailers(notServed(head.path), true));
      return;
    }
    let admitted: AdmittedCall | undefined;
    const call = new NodeCall(stream, head, {
      ...{ served, peer, nowMs, schedule },
      maxMessageBytes: MAX_MESSAGE_BYTES,
      onReceived: () => admitted?.received(),
      onClose: () => admitted?.closed(),
    });
    try {
      const late = (error: CoordinatorError): void => call.fail(error);
      admitted = admission.admitProven({ path: head.path, call, late });
      call.start();
    } catch (error) {
      call.fail(error);
    }
  }

  #check(): void {
    const { schedule, monotonicMs } = this.#options;
    this.#cancelCheck = schedule(CHECK_MS, () => this.#check());
    const nowMs = monotonicMs();
    for (const connection of [...this.#connections]) connection.check(nowMs);
  }
}

function notServed(path: string): CoordinatorError {
  return new CoordinatorError(
    "UNIMPLEMENTED",
    `The server does not implement the method ${path.slice(0, 200)}`,
  );
}
