import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { isBlockedByBrowsers } from "../../common/src/blocked-ports.ts";
import { SetupError } from "./setup-error.ts";

/**
 * The first port. Ports are below the range that the kernel uses for connections and for servers without a fixed port:
 * such a port could be taken while the program for it starts or restarts. The node ports of services are above.
 */
const FIRST = 10_000;
const END = 29_000;
const MAX_TRIES = 1_000;

/**
 * Returns different free ports of the address, none of which browsers or `fetch` refuse. Each is kept open until all are
 * known.
 */
export async function freePorts(
  count: number,
  address = "127.0.0.1",
  draw = () => randomInt(FIRST, END),
): Promise<number[]> {
  const servers = new Map<number, Server>();
  for (let tries = 0; servers.size < count; tries++) {
    if (tries === MAX_TRIES) {
      await Promise.all([...servers.values()].map(close));
      throw new SetupError("NOT_READY", `${MAX_TRIES} ports of ${address} are in use`, "end other tests");
    }
    const port = draw();
    if (isBlockedByBrowsers(port)) continue;
    const server = await listen(port, address);
    if (server !== undefined) servers.set(port, server);
  }
  await Promise.all([...servers.values()].map(close));
  return [...servers.keys()];
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Returns a server that listens on the port; `undefined` if the port is in use. */
function listen(port: number, address: string): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(port, address, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
