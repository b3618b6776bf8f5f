import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../../errors.ts";
import type { Ingress } from "./ingress.ts";
import type { IngressSettings } from "./ingress-settings.ts";

export interface IngressServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Cuts the open requests and WebSockets of a workspace that changed, if their visitors may no longer reach it. */
  recheck(instanceId: string): void;
  close(): Promise<void>;
}

export interface IngressServerOptions {
  readonly settings: IngressSettings;
  readonly ingress: Ingress;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "info">;
}

/** A certificate is renewed weeks before its end, so that this is soon enough. */
const RELOAD_INTERVAL_MS = 60_000;
/** A visitor must send the headers of a request within this time. */
const HEADERS_TIMEOUT_MS = 20_000;
/** Browsers reuse connections for about as long. */
const KEEP_ALIVE_MS = 60_000;
/** Applications set many cookies. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Finds visitors that went away without closing their connection. */
const TCP_KEEP_ALIVE_MS = 60_000;

/** Opens the ingress' port. */
export async function startIngressServer(options: IngressServerOptions): Promise<IngressServer> {
  const { settings, ingress, log } = options;
  const material = await readMaterial(settings);
  const limits = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Uploads take as long as they take; connections are limited in number.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    noDelay: true,
  };
  const server = material === undefined ? createServer(limits) : createTlsServer({ ...limits, ...material });
  const proto = material === undefined ? "http" : "https";
  const arrivalOf = ({ socket }: IncomingMessage) =>
    ({ address: socket.remoteAddress ?? "", proto }) as const;
  const failed = (err: unknown): void => log.warn({ event: "ingress-request-failed", err });
  server.maxConnections = settings.connections;
  server.on("request", (request, response) => {
    response.on("error", () => response.destroy());
    ingress.serve(request, response, arrivalOf(request)).catch((error: unknown) => {
      failed(error);
      response.destroy();
    });
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    ingress.upgrade(request, socket, head, arrivalOf(request)).catch((error: unknown) => {
      failed(error);
      socket.destroy();
    });
  });
  const sockets = trackSockets(server);
  const address = await listen(server, settings.listen);
  const cancel = material === undefined ? () => {} : reloadRegularly(server, options);
  return {
    address,
    recheck: (instanceId) => ingress.recheck(instanceId),
    close: async () => {
      cancel();
      ingress.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Upgraded connections are no longer the HTTP server's: they are ended here. */
function trackSockets(server: Server): ReadonlySet<{ destroy(): void }> {
  const sockets = new Set<{ destroy(): void }>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
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
