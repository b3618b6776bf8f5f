import type { Socket } from "node:net";

/**
 * Returns a key for a connection of this listener. It includes both ends, because a listener on all addresses can have
 * one remote port twice.
 */
export function keyOf(socket: Socket): string | undefined {
  if (socket.remoteAddress === undefined) return undefined;
  return `${socket.remoteAddress}:${socket.remotePort}>${socket.localAddress}`;
}
