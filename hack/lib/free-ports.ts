import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { SetupError } from "./setup-error.ts";

/**
 * Below the range from which the kernel takes ports for connections and for servers that ask for any: such a port could be taken
 * while the program that was given it starts, or is started again. Above are the node ports of services.
 */
const FIRST = 10_000;
const END = 29_000;
const MAX_TRIES = 1_000;

/** Returns ports of the address that are free and differ: each is held until the last one is known. */
export async function freePorts(count: number, address = "127.0.0.1"): Promise<number[]> {
  const servers = new Map<number, Server>();
  for (let tries = 0; servers.size < count; tries++) {
    if (tries === MAX_TRIES) {
      await Promise.all([...servers.values()].map(close));
      throw new SetupError("NOT_READY", `${MAX_TRIES} ports of ${address} are in use`, "end other tests");
    }
    const port = randomInt(FIRST, END);
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

/** Returns undefined if the port is in use. */
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
