import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { systemClock } from "@forage/common/clock";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import type { HostPort } from "../config.ts";
import { BodyLimits } from "./body-limits.ts";
import { type ConnectionLimits, ConnectionSlots, DEFAULT_CONNECTION_LIMITS } from "./connection-slots.ts";
import type { Metrics } from "./metrics.ts";
import type { OtherHosts } from "./other-hosts.ts";

/** Whether the coordinator is ready; `reasons` explain why it is not. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** The role of this coordinator. Absent if it is the only one. */
  readonly role?: CoordinatorRole;
}

export interface CoordinatorRole {
  readonly leads: boolean;
  /** The name of the leader. Absent if unknown. */
  readonly leader?: string;
  /** The time since which the leader leads, by its wall clock. Absent if unknown. */
  readonly since?: string;
  /**
   * The time since this coordinator's store was last known to be complete. Absent on the leader.
   */
  readonly behindSeconds?: number;
}

/** The content of the port. */
export interface HttpContent {
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  /** Adds further routes. */
  readonly routes?: (app: Hono<{ Bindings: HttpBindings }>) => void;
  /** Serves other host names. Undefined if all host names lead to the routes. */
  readonly otherHosts?: OtherHosts | undefined;
}

export interface HttpServerOptions extends HttpContent {
  readonly listen: HostPort;
  /** The certificate; undefined for plain text. */
  readonly tls?: HttpTls;
  readonly limits?: Partial<ConnectionLimits>;
  /** Schedules timers. Default: uses the machine's clock. */
  readonly schedule?: (delayMs: number, run: () => void) => () => void;
}

/** A certificate with its chain and its key, in PEM. */
export interface HttpTls {
  readonly chainPem: string;
  readonly keyPem: string;
}

export interface HttpServer {
  readonly address: HostPort;
  /** Replaces the certificate for new connections. */
  reload(tls: HttpTls): void;
  /** Replaces the content for new requests. */
  replace(content: HttpContent): void;
  /** Answers a request that did not arrive at the port. */
  readonly fetch: HttpFetch;
  /** Serves a connection that did not arrive at the port and that has no TLS. */
  accept(connection: Duplex): void;
  close(): Promise<void>;
}

export type HttpFetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Opens the HTTP port. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  let app = appOf(options);
  let { otherHosts } = options;
  const fetch: HttpFetch = (request, env) => app.fetch(request, env);
  const own = getRequestListener((request, env) => fetch(request, env as HttpBindings));
  const { schedule = systemClock.schedule } = options;
  const server = makeServer(options.tls, own, () => otherHosts, new BodyLimits({ schedule }));
  const limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.limits };
  const slots = new ConnectionSlots(limits);
  server.maxConnections = limits.maxConnections;
  server.on("connection", (socket) => slots.add(socket));
  server.prependListener("request", (request, response) => slots.use(request, response));
  server.prependListener("upgrade", (request, client) => slots.use(request, client));
  const address = await listening(server, options.listen);
  return {
    address,
    fetch,
    accept: (connection) =>
      server.emit("setSecureContext" in server ? "secureConnection" : "connection", connection),
    replace: (content) => {
      app = appOf(content);
      otherHosts = content.otherHosts;
    },
    reload: ({ chainPem, keyPem }) => {
      if ("setSecureContext" in server) server.setSecureContext({ cert: chainPem, key: keyPem });
    },
    close: () =>
      new Promise((resolve) => {
        otherHosts?.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Serves health, readiness and metrics. They reveal nothing about deployed resources, so callers
 * need no credentials.
 */
function appOf({ metrics, readiness, routes }: HttpContent): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", (c) => {
    const { ready, ...more } = readiness();
    return c.json({ ready, ...more }, ready ? 200 : 503);
  });
  app.get("/metrics", async (c) =>
    c.body(await metrics.render(), 200, { "content-type": metrics.contentType }),
  );
  routes?.(app);
  return app;
}

/** The time-outs of Node. Bodies have limits of their own. */
const TIMEOUTS = { requestTimeout: 0, headersTimeout: 5_000 };

function makeServer(
  tls: HttpTls | undefined,
  own: RequestListener,
  others: () => OtherHosts | undefined,
  bodies: BodyLimits,
): Server | TlsServer {
  const isOther = ({ headers }: IncomingMessage): boolean => others()?.owns(headers.host) === true;
  const listener: RequestListener = (request, response) => {
    const allowLong = bodies.begin(request, response);
    const otherHosts = others();
    if (otherHosts === undefined || !isOther(request)) return own(request, response);
    response.on("error", () => response.destroy());
    otherHosts.serve(request, response, arrivalOf(request), allowLong).catch(() => response.destroy());
  };
  // For other requests, an upgrade is ignored.
  const settings = { ...TIMEOUTS, shouldUpgradeCallback: isOther };
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createTlsServer(
          { ...settings, cert: tls.chainPem, key: tls.keyPem, minVersion: "TLSv1.2" },
          listener,
        );
  server.on("upgrade", (request, client, head) => {
    client.on("error", () => client.destroy());
    const serving = others()?.upgrade(request, client, head, arrivalOf(request));
    serving?.catch(() => client.destroy());
  });
  return server;
}

function arrivalOf({ socket }: IncomingMessage) {
  return {
    address: socket.remoteAddress ?? "",
    proto: "encrypted" in socket ? "https" : "http",
  } as const;
}

function listening(server: Server | TlsServer, { host, port }: HostPort): Promise<HostPort> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      const bound = server.address() as AddressInfo;
      resolve({ host: bound.address, port: bound.port });
    });
  });
}
