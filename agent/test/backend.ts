import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export interface Backend {
  readonly port: number;
  readonly server: Server;
  /** The received requests in order. */
  readonly asked: Seen[];
}

/** A request as a backend receives it. */
export interface Seen {
  readonly backend: string;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Starts an HTTP server on loopback that responds with the request as JSON, or as `answer` decides. */
export async function startBackend(
  t: TestContext,
  name: string,
  answer?: (seen: Seen, response: ServerResponse, request: IncomingMessage) => void,
  address = "127.0.0.1",
): Promise<Backend> {
  const asked: Seen[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const seen = { backend: name, method, url, headers, body: Buffer.concat(parts).toString() };
      asked.push(seen);
      if (answer !== undefined) return answer(seen, response, request);
      response.writeHead(200, { "content-type": "application/json", server: name, "x-from": name });
      response.end(JSON.stringify(seen));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  t.after(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return { port: (server.address() as AddressInfo).port, server, asked };
}
