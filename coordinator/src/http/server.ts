import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { HostPort } from "../config.ts";
import type { Metrics } from "./metrics.ts";

/** Whether the coordinator can do its work; `reasons` say what is missing. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

export interface HttpServerOptions {
  readonly listen: HostPort;
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  /** Further routes. */
  readonly routes?: (app: Hono) => void;
}

/** Health, readiness and metrics. Shows nothing of what is deployed, so it asks nobody who they are. */
export async function startHttpServer(
  options: HttpServerOptions,
): Promise<{ readonly address: HostPort; close(): Promise<void> }> {
  const { metrics, readiness, listen } = options;
  const app = new Hono();
  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", (c) => {
    const { ready, reasons } = readiness();
    return c.json({ ready, reasons }, ready ? 200 : 503);
  });
  app.get("/metrics", async (c) =>
    c.body(await metrics.render(), 200, { "content-type": metrics.contentType }),
  );
  options.routes?.(app);
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000 },
    getRequestListener(app.fetch),
  );
  server.maxConnections = 256;
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
