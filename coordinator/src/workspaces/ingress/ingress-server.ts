import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../../errors.ts";
import { type CountedSocket, IdleSockets } from "./idle-sockets.ts";
import type { Ingress } from "./ingress.ts";
import type { IngressSettings } from "./ingress-settings.ts";

/** The port of the ingress. It stays open when a follower becomes the leader. */
export interface IngressServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Serves connections from now on, instead of passing them on. */
  serve(ingress: ServedIngress): void;
  /** Serves a connection that another coordinator passed on. That coordinator ended its TLS. */
  accept(connection: Duplex & CountedSocket): void;
  /**
   * Closes the open requests and WebSockets of a changed workspace whose visitors may no longer
   * reach it.
   */
  recheck(instanceId: string): void;
  close(): Promise<void>;
}

export type ServedIngress = Pick<Ingress, "serve" | "upgrade" | "recheck" | "close">;

export interface IngressServerOptions {
  readonly settings: IngressSettings;
  /**
   * The ingress that serves the connections. If absent, connections are passed on until `serve` is
   * called.
   */
  readonly ingress?: ServedIngress | undefined;
  /** Passes a connection on to the leader. Default: closes it. */
  readonly pass?: ((connection: Socket) => void) | undefined;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "info">;
}

/**
 * The interval between reads of the certificate's files. Certificates are renewed weeks before they
 * expire.
 */
const RELOAD_INTERVAL_MS = 60_000;
/** The time within which a visitor must send the headers of a request. */
const HEADERS_TIMEOUT_MS = 20_000;
/**
 * The time for which an idle connection stays open, about as long as browsers reuse connections.
 */
const KEEP_ALIVE_MS = 60_000;
/** The size limit of a request's headers. Applications set many cookies. */
const MAX_HEADER_BYTES = 64 * 1024;
/**
 * The interval of TCP keep-alive, which detects visitors that disappeared without closing their
 * connection.
 */
const TCP_KEEP_ALIVE_MS = 60_000;

/** Opens the ingress' port. */
export async function startIngressServer(options: IngressServerOptions): Promise<IngressServer> {
  const { settings, log, pass = (connection) => connection.destroy() } = options;
  let { ingress } = options;
  const material = await readMaterial(settings);
  const limits = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Uploads may last any time; the number of connections is limited instead.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    noDelay: true,
  };
  const server = material === undefined ? createServer(limits) : createTlsServer({ ...limits, ...material });
  const failed = (err: unknown): void => log.warn({ event: "ingress-request-failed", err });
  server.maxConnections = settings.connections;
  server.on("request", (request, response) => {
    response.on("error", () => response.destroy());
    const serving = ingress?.serve(request, response, arrivalOf(request));
    serving?.catch((error: unknown) => {
      failed(error);
      response.destroy();
    });
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    const serving = ingress?.upgrade(request, socket, head, arrivalOf(request));
    serving?.catch((error: unknown) => {
      failed(error);
      socket.destroy();
    });
  });
  // The HTTP server no longer tracks upgraded connections, so they are closed here.
  const sockets = new IdleSockets(options.clock);
  server.on("connection", (socket) => sockets.add(socket));
  const serveHttp = interceptConnections(server, (connection) => {
    if (ingress === undefined) pass(connection);
    else serveHttp(connection);
  });
  const passed = new Set<Duplex>();
  const address = await listen(server, settings.listen);
  const cancel = material === undefined ? () => {} : reloadRegularly(server, options);
  return {
    address,
    serve: (served) => {
      ingress = served;
    },
    accept: (connection) => {
      if (ingress === undefined || passed.size >= settings.connections) return void connection.destroy();
      passed.add(connection);
      connection.once("close", () => passed.delete(connection));
      sockets.add(connection);
      return serveHttp(connection);
    },
    recheck: (instanceId) => ingress?.recheck(instanceId),
    close: async () => {
      cancel();
      ingress?.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      sockets.close();
      await closed;
    },
  };
}

/**
 * Passes each connection of the server, after its TLS handshake, to `take` instead of the server's
 * own HTTP handler. Returns a function that passes a connection to that handler.
 */
function interceptConnections(
  server: Server | TlsServer,
  take: (connection: Socket) => void,
): (connection: Duplex) => void {
  const event = "setSecureContext" in server ? "secureConnection" : "connection";
  const [own] = server.listeners(event);
  if (own === undefined) throw new Error("the server has no connection handler");
  server.off(event, own as () => void);
  server.on(event, take);
  return (connection) => void own.call(server, connection);
}

function arrivalOf({ socket }: IncomingMessage) {
  const proto = "encrypted" in socket ? "https" : "http";
  return { address: socket.remoteAddress ?? "", proto } as const;
}

function listen(server: Server, text: string): Promise<{ readonly host: string; readonly port: number }> {
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, colon).replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new CoordinatorError(
          "FAILED_PRECONDITION",
          `workspaces.ingress.listen: ${text} can't be opened: ${cause.message}`,
          {
            cause,
          },
        ),
      ),
    );
    server.listen(Number(text.slice(colon + 1)), host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({ host, port });
    });
  });
}

function reloadRegularly(
  server: Server | TlsServer,
  { settings, clock, log }: IngressServerOptions,
): () => void {
  let cancel = (): void => {};
  let former = "";
  const later = (): void => {
    cancel = clock.schedule(RELOAD_INTERVAL_MS, () => {
      readMaterial(settings)
        .then((material) => {
          if (material === undefined || !("setSecureContext" in server) || material.cert === former) return;
          server.setSecureContext(material);
          former = material.cert;
        })
        .catch((err: unknown) => log.warn({ event: "ingress-certificate-unreadable", err }));
      later();
    });
  };
  later();
  return () => cancel();
}

async function readMaterial({
  certificateFile,
  keyFile,
}: IngressSettings): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  if (certificateFile === undefined && keyFile === undefined) return undefined;
  if (certificateFile === undefined || keyFile === undefined)
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      "workspaces.ingress: certificateFile and keyFile must be set together",
    );
  try {
    const [cert, key] = await Promise.all([readFile(certificateFile, "utf8"), readFile(keyFile, "utf8")]);
    return { cert, key };
  } catch (cause) {
    const reason = messageOf(cause);
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspaces.ingress: a certificate file can't be read: ${reason}`,
      {
        cause,
      },
    );
  }
}
