import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CoordinatorError } from "../../errors.ts";
import type { SshSettings } from "./ssh-settings.ts";

/** The port of the SSH gateway. It stays open when a follower becomes the leader. */
export interface SshPort {
  readonly address: { readonly host: string; readonly port: number };
  /** Passes all further connections to `take`. */
  serve(take: (connection: Duplex) => void): void;
  close(): Promise<void>;
}

/** Opens the port. Connections are passed to `pass` until `serve` is called. */
export async function openSshPort(
  { listen: text }: Pick<SshSettings, "listen">,
  pass: (connection: Socket) => void,
): Promise<SshPort> {
  let take: (connection: Socket) => void = pass;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    take(socket);
  });
  const address = await listen(server, text);
  return {
    address,
    serve: (next) => {
      take = next;
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroySoon();
      await closed;
    },
  };
}

function listen(server: Server, text: string): Promise<{ readonly host: string; readonly port: number }> {
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, colon).replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    server.on("error", (cause: Error) =>
      reject(
        new CoordinatorError(
          "FAILED_PRECONDITION",
          `workspaces.ssh.listen: ${text} can't be opened: ${cause.message}`,
          {
            cause,
          },
        ),
      ),
    );
    server.listen(Number(text.slice(colon + 1)), host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({ host, port });
    });
  });
}
