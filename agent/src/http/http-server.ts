import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { HostPort } from "../settings.ts";

export interface HttpServerOptions {
  readonly listen: HostPort;
  /** Returns the problems that prevent the agent from working. Empty if there are none. */
  readonly problems: () => readonly string[];
  /** Reports whether the coordinator rejects this host until an operator acts. */
  readonly isRefused: () => boolean;
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
  /** Returns the metrics of the gateway's proxy. Undefined if it does not run. */
  readonly gatewayMetrics: () => Promise<string | undefined>;
}

export interface HttpServer {
  readonly address: HostPort;
  close(): Promise<void>;
}

// Enough for a scraper and health checks.
const CONNECTIONS_MAX = 64;

/**
 * Serves health, readiness and metrics on loopback, without credentials. It uses Node's own server, because a framework
 * would load the fetch API, which costs the agent 5 MB.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { listen } = options;
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
    const send = ({ status = 200, type = "text/plain; charset=utf-8", body }: Answer): void => {
      // Node omits the body for HEAD.
      response
        .writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) })
        .end(body);
    };
    answer(options, request.method ?? "", request.url ?? "").then(send, () =>
      send({ status: 500, body: "internal error\n" }),
    );
  });
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

interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

async function answer(
  { problems, isRefused, metrics, gatewayMetrics }: HttpServerOptions,
  method: string,
  url: string,
): Promise<Answer> {
  if (method !== "GET" && method !== "HEAD") return { status: 405, body: "GET only\n" };
  switch (url.split("?")[0]) {
    case "/healthz":
      return { body: "ok\n" };
    case "/readyz": {
      const reasons = problems();
      const ready = reasons.length === 0;
      return {
        status: ready ? 200 : 503,
        type: "application/json",
        body: JSON.stringify({ ready, reasons, ...(isRefused() && { refused: true }) }),
      };
    }
    case "/metrics":
      return { type: metrics.contentType, body: await metrics.render() };
    case "/gateway/metrics": {
      const text = await gatewayMetrics();
      return text === undefined
        ? { status: 503, body: "no gateway proxy runs on this node\n" }
        : { type: metrics.contentType, body: text };
    }
    default:
      return {
        status: 404,
        body: "not found; the paths are /healthz, /readyz, /metrics and /gateway/metrics\n",
      };
  }
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
