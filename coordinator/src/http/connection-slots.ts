import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { AnonymousShare, addressGroup } from "@forage/identity/tls-server";

export interface ConnectionLimits {
  /** The most connections, including those with a request in progress. */
  readonly maxConnections: number;
  /**
   * The most connections that have sent no complete request header, or that wait for their next
   * request.
   */
  readonly maxIdle: number;
  readonly maxIdlePerAddress: number;
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  /**
   * Each connection uses about 20 KB. Three quarters are reserved for requests in progress, such as
   * watches of events.
   */
  maxConnections: 1_024,
  maxIdle: 256,
  /** A quarter, so that connections from one address can't displace all others. */
  maxIdlePerAddress: 64,
};

/**
 * Limits the connections of a server. Idle ones are closed in favour of newer ones, so that
 * incomplete requests can't block others.
 */
export class ConnectionSlots {
  readonly #idle: AnonymousShare<Socket>;
  readonly #sockets = new Map<string, Socket>();

  constructor(limits: ConnectionLimits) {
    this.#idle = new AnonymousShare({
      maxAnonymous: limits.maxIdle,
      maxAnonymousPerAddress: limits.maxIdlePerAddress,
    });
  }

  get idle(): number {
    return this.#idle.size;
  }

  get open(): number {
    return this.#sockets.size;
  }

  /** Adds an accepted connection. Must be called before TLS starts. */
  add(socket: Socket): void {
    const key = keyOf(socket);
    const address = addressGroup(socket.remoteAddress ?? "");
    this.#sockets.set(key, socket);
    socket.once("close", () => {
      this.#idle.remove(socket, address);
      if (this.#sockets.get(key) === socket) this.#sockets.delete(key);
    });
    this.#enter(socket);
  }

  /**
   * Marks a connection as busy until its response has ended. Must be called for each request with a
   * complete header.
   */
  use(
    { socket: { remoteAddress = "", remotePort } }: IncomingMessage,
    response: Pick<EventEmitter, "once">,
  ): void {
    const socket = this.#sockets.get(`${remoteAddress}:${remotePort}`);
    if (socket === undefined) return;
    if (!this.#idle.remove(socket, addressGroup(remoteAddress))) return;
    response.once("close", () => {
      if (!socket.destroyed) this.#enter(socket);
    });
  }

  #enter(socket: Socket): void {
    this.#idle.add(socket, addressGroup(socket.remoteAddress ?? ""))?.destroy();
  }
}

function keyOf({ remoteAddress = "", remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
