import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { systemClock } from "@forage/common/clock";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import type { HostPort } from "../config.ts";
import { BodyLimits } from "./body-limits.ts";
import { type ConnectionLimits, ConnectionPlaces, DEFAULT_CONNECTION_LIMITS } from "./connection-places.ts";
import type { Metrics } from "./metrics.ts";
import type { OtherHosts } from "./other-hosts.ts";

/** Whether the coordinator can do its work; `reasons` say what is missing. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** The part of this coordinator among several. Absent: it is the only one. */
  readonly role?: CoordinatorRole;
}

export interface CoordinatorRole {
  readonly leads: boolean;
  /** The name of the coordinator that leads. Absent: it is not known. */
  readonly leader?: string;
  /** The time since which that coordinator leads, by its wall clock. Absent: it is not known. */
  readonly since?: string;
  /** The time since the store was last known to be complete. Absent on the leader. */
  readonly behindSeconds?: number;
}

/** The answers of the port. */
export interface HttpContent {
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  /** Further routes. */
  readonly routes?: (app: Hono<{ Bindings: HttpBindings }>) => void;
  /** Undefined: every host name leads to the routes. */
  readonly otherHosts?: OtherHosts | undefined;
}

export interface HttpServerOptions extends HttpContent {
  readonly listen: HostPort;
  /** Undefined: plain text. */
  readonly tls?: HttpTls;
  readonly limits?: Partial<ConnectionLimits>;
  /** Default: by the machine's clock. */
  readonly schedule?: (delayMs: number, run: () => void) => () => void;
}

/** A certificate with its chain and its key, PEM. */
export interface HttpTls {
  readonly chainPem: string;
  readonly keyPem: string;
}

export interface HttpServer {
  readonly address: HostPort;
  /** Replaces the certificate for new connections. */
  reload(tls: HttpTls): void;
  /** Replaces the answers to requests that begin from now on. */
  replace(content: HttpContent): void;
  /** Answers a request that did not come through the port. */
  readonly fetch: HttpFetch;
  close(): Promise<void>;
}

export type HttpFetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Opens the port for HTTP. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  let app = appOf(options);
  let { otherHosts } = options;
  const fetch: HttpFetch = (request, env) => app.fetch(request, env);
  const own = getRequestListener((request, env) => fetch(request, env as HttpBindings));
  const { schedule = systemClock.schedule } = options;
  const server = makeServer(options.tls, own, () => otherHosts, new BodyLimits({ schedule }));
  const limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.limits };
  const places = new ConnectionPlaces(limits);
  server.maxConnections = limits.maxConnections;
  server.on("connection", (socket) => places.add(socket));
  server.prependListener("request", (request, response) => places.use(request, response));
  server.prependListener("upgrade", (request, client) => places.use(request, client));
  const address = await listening(server, options.listen);
  return {
    address,
    fetch,
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

/** Answers health, readiness and metrics. They reveal nothing about what is deployed, so callers need no credentials. */
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

/** Bodies have limits of their own. */
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
  // Without it, a request to upgrade is a plain one, as it is for the server's own routes.
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
