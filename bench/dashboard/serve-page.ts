import { readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import type { Clock } from "@forage/common/clock";
import { liveFeed } from "../../coordinator/src/dashboard/live/live-feed.ts";
import type { LiveTables } from "../../coordinator/src/dashboard/live/live-tables.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "../../coordinator/src/http/event-stream.ts";

export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the built page with the live tables. The browser counts as logged in. */
export async function servePage(path: string, tables: LiveTables, clock: Clock): Promise<PageServer> {
  const files = JSON.parse(readFileSync(path, "utf8")) as Readonly<
    Record<string, { readonly type: string; readonly gzip: string }>
  >;
  const grants = [{ role: "admin", namespaces: "*" }];
  const me = { cluster: "bench", issuer: "", opensPorts: false, token: "bench", grants };
  const server = createServer((request, response) => {
    const name = (request.url ?? "").split("/").at(-1) || "index.html";
    if (name === "me")
      return void response.setHeader("content-type", "application/json").end(JSON.stringify(me));
    if (name === "live") return stream(response, tables, clock);
    const file = files[name];
    if (file === undefined) return void response.writeHead(404).end();
    response.setHeader("content-type", file.type).end(gunzipSync(Buffer.from(file.gzip, "base64")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, close: () => close(server) };
}

function stream(response: ServerResponse, tables: LiveTables, clock: Clock): void {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const all = { seesNodes: true, seesWorkspaces: true, seesCertificates: true, seesNamespace: () => true };
  const feed = liveFeed({ tables, clock, ...all }, gone.signal);
  const body = eventStream(feed, (text) => `data: ${text}\n\n`, { schedule: clock.schedule, end: () => {} });
  response.writeHead(200, EVENT_STREAM_HEADERS);
  Readable.fromWeb(body as never).pipe(response);
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
