import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import type { TestContext } from "node:test";
import { systemClock } from "../../time/clock.ts";
import type { CloseReason } from "../connection-error.ts";
import type { RequestHead } from "../request-head.ts";
import type { ServerStream } from "../server-stream.ts";
import { SocketConnection } from "../socket-connection.ts";

/**
 * Starts a server on loopback whose streams are passed to `onRequest`. Returns it with the reasons
 * why it closed connections.
 */
export async function startServer(
  t: TestContext,
  onRequest: (stream: ServerStream, head: RequestHead) => void,
): Promise<{ readonly port: number; readonly failures: readonly CloseReason[] }> {
  const failures: CloseReason[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    new SocketConnection(socket, {
      monotonicMs: systemClock.monotonicMs,
      schedule: systemClock.schedule,
      maxStreams: 100,
      onRequest,
      onFailure: ({ reason }) => failures.push(reason),
      onClose: () => sockets.delete(socket),
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, failures };
}
