import { type Duplex, duplexPair } from "node:stream";
import type {
  HttpRequest,
  HttpRequestHead,
  HttpResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";

/**
 * The methods of heads that are followed by the bytes of a connection, by the port to which the
 * client connected.
 */
export const CONNECT = { http: "CONNECT", ingress: "CONNECT-INGRESS", ssh: "CONNECT-SSH" } as const;

export type PassedPort = keyof typeof CONNECT;

/** Functions that serve a connection like the ports. Those for workspaces are optional. */
export type AcceptConnection = { readonly http: Accept } & {
  readonly [port in Exclude<PassedPort, "http">]?: Accept | undefined;
};

type Accept = (connection: ServedConnection) => void;

/** A stream with the properties of a socket that servers use. */
export type ServedConnection = Duplex & {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
};

/** Returns the port for a head with this method; undefined if a request follows. */
export function passedPort(method: string): PassedPort | undefined {
  return PORTS.find((port) => CONNECT[port] === method);
}

const PORTS: readonly PassedPort[] = ["http", "ingress", "ssh"];

/**
 * Serves a connection that another coordinator passed on: for host names that need the client's own
 * connection, such as opened pod ports, and for the ports of workspaces. `accept` receives it like
 * a server's socket.
 */
export async function* serveConnection(
  { remoteAddress, remotePort, localAddress, localPort, encrypted }: HttpRequestHead,
  parts: AsyncIterator<HttpRequest>,
  signal: AbortSignal,
  accept: Accept,
): AsyncGenerator<HttpResponse> {
  const [near, far] = duplexPair();
  const ends = { remoteAddress, remotePort, localAddress, localPort, bytesRead: 0, bytesWritten: 0 };
  const connection = Object.assign(far, ends, encrypted && { encrypted });
  const cut = (): void => {
    near.destroy();
    far.destroy();
  };
  near.on("error", () => {});
  far.on("error", () => {});
  far.once("close", () => {
    if (!far.writableFinished) near.destroy(new Error("the connection was cut off"));
  });
  signal.addEventListener("abort", cut, { once: true });
  try {
    yield { part: { $case: "head", value: { status: 200, headers: [], revision: 0n } } };
    accept(connection);
    receive(parts, near, (bytes) => {
      connection.bytesRead += bytes;
    }).catch(cut);
    for await (const value of near as AsyncIterable<Buffer>) {
      yield { part: { $case: "body", value } };
      connection.bytesWritten += value.length;
    }
  } finally {
    signal.removeEventListener("abort", cut);
    cut();
  }
}

async function receive(
  parts: AsyncIterator<HttpRequest>,
  near: Duplex,
  count: (bytes: number) => void,
): Promise<void> {
  for (;;) {
    const { done, value } = await parts.next();
    if (done) break;
    if (value.part?.$case !== "body") continue;
    count(value.part.value.length);
    if (!near.write(value.part.value)) await drained(near);
    if (near.destroyed) return;
  }
  near.end();
}

function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off("drain", go);
      stream.off("close", go);
      resolve();
    };
    stream.once("drain", go);
    stream.once("close", go);
  });
}
