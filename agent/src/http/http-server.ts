import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { HostPort } from "../settings.ts";

export interface HttpServerOptions {
  readonly listen: HostPort;
  /** What is missing for the agent to do its work; empty: nothing. */
  readonly problems: () => readonly string[];
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
}

export interface HttpServer {
  readonly address: HostPort;
  close(): Promise<void>;
}

// A scraper and a health check; anything more is a mistake or an attack.
const CONNECTIONS_MAX = 64;

/** Health, readiness and metrics, on loopback: it asks nobody who they are. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { problems, metrics, listen } = options;
  const app = new Hono();
  app.get("/healthz", (context) => context.text("ok\n"));
  app.get("/readyz", (context) => {
    const reasons = problems();
    const ready = reasons.length === 0;
    return context.json({ ready, reasons }, ready ? 200 : 503);
  });
  app.get("/metrics", async (context) =>
    context.body(await metrics.render(), 200, { "content-type": metrics.contentType }),
  );
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000 },
    getRequestListener(app.fetch),
  );
  server.maxConnections = CONNECTIONS_MAX;
  const address = await listening(server, listen);
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, { host, port }: HostPort): Promise<HostPort> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      const bound = server.address() as AddressInfo;
      resolve({ host: bound.address, port: bound.port });
    });
  });
}
