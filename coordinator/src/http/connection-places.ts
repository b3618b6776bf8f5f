import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { AnonymousShare, addressGroup } from "@forage/identity/tls-server";

export interface ConnectionLimits {
  /** Connections in all, those with a request in progress included. */
  readonly maxConnections: number;
  /** Connections that have sent no complete request header, or wait for their next request. */
  readonly maxIdle: number;
  readonly maxIdlePerAddress: number;
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  /** About 20 KB each. Three quarters are for requests in progress, such as watches of events. */
  maxConnections: 1_024,
  maxIdle: 256,
  /** A quarter, so that no single address replaces the connections of others. */
  maxIdlePerAddress: 64,
};

/**
 * Keeps places for requests free: a connection without a complete request header is closed when newer ones need its place, so
 * that half requests never keep others out.
 */
export class ConnectionPlaces {
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

  /** Must be called for each accepted connection, before TLS if there is any. */
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

  /** Must be called for each request whose header is complete, with what closes at its end. */
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
