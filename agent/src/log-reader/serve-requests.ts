import { chmodSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { messageOf } from "@forage/common/message-of";
import type { ReaderAnswer, ReaderRequest } from "../logs/stream-places.ts";

export interface RequestServerOptions {
  /** The path of a socket, or the descriptor of a socket on which systemd listens. */
  readonly at: string | number;
  /** Handles a request. Throws an error with the message for the client. */
  readonly answer: (request: ReaderRequest) => void;
}

const REQUEST_MAX_BYTES = 8 * 1024;
const CONNECTIONS_MAX = 64;
const REQUEST_TIMEOUT_MS = 10_000;

/** Serves the agent's requests. Rejects if another reader listens there already. */
export async function serveRequests({ at, answer }: RequestServerOptions): Promise<Server> {
  const server = createServer((socket) => serve(socket, answer));
  server.maxConnections = CONNECTIONS_MAX;
  if (typeof at === "string") await makeWay(at);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    if (typeof at === "string") server.listen(at, resolve);
    else server.listen({ fd: at }, resolve);
  });
  // The socket's directory is closed to other users already.
  if (typeof at === "string") chmodSync(at, 0o600);
  return server;
}

function serve(socket: Socket, answer: RequestServerOptions["answer"]): void {
  let text = "";
  socket.setTimeout(REQUEST_TIMEOUT_MS, () => socket.destroy());
  socket.on("error", () => undefined);
  socket.setEncoding("utf8");
  socket.on("data", (part: string) => {
    text += part;
    if (text.length > REQUEST_MAX_BYTES) socket.destroy();
    const lineBreak = text.indexOf("\n");
    if (lineBreak < 0 || socket.destroyed) return;
    socket.pause();
    socket.end(`${JSON.stringify(tryAnswer(text.slice(0, lineBreak), answer))}\n`);
  });
}

function tryAnswer(line: string, answer: RequestServerOptions["answer"]): ReaderAnswer {
  try {
    const { kind, logFile } = JSON.parse(line) as Partial<ReaderRequest>;
    if (kind === undefined || typeof logFile !== "string") throw new Error("a request has kind and logFile");
    answer({ kind, logFile });
    return {};
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** Removes the socket of a killed reader. Throws if another reader uses it. */
async function makeWay(path: string): Promise<void> {
  const alive = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
  if (alive) throw new Error(`another reader listens on ${path}`);
  rmSync(path, { force: true });
}
