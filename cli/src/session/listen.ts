import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { CliError } from "../errors.ts";

/**
 * The most open connections; each is a stream through coordinator and agent. A browser opens about
 * a dozen.
 */
const MAX_CONNECTIONS = 100;

export interface PortListener {
  /** The port, which is chosen by the system if 0 was requested. */
  readonly port: number;
  close(): void;
}

/** Listens on a port of this machine. `refused` is called for connections beyond the limit. */
export async function listen(
  { address, port }: { readonly address: string; readonly port: number },
  on: { readonly connection: (socket: Socket) => void; readonly refused: (limit: number) => void },
): Promise<PortListener> {
  const server: Server = createServer({ allowHalfOpen: true, noDelay: true }, on.connection);
  server.maxConnections = MAX_CONNECTIONS;
  server.on("drop", () => on.refused(MAX_CONNECTIONS));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, address, port)));
    server.listen({ host: address, port }, resolve);
  });
  // Accepting a connection can fail for lack of file descriptors. Open connections continue.
  server.on("error", () => {});
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

function explain(error: NodeJS.ErrnoException, address: string, port: number): CliError {
  const what =
    error.code === "EADDRINUSE"
      ? `port ${port} is taken on ${address}: give another before the colon, or none for any that is free (:REMOTE)`
      : error.code === "EACCES"
        ? `port ${port} is only for root: give another before the colon, such as 8080:${port}`
        : `can't listen on ${address} port ${port}: ${error.message}`;
  return new CliError("USAGE", what, { cause: error });
}
