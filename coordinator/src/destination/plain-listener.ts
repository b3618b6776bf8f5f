import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { Offenders, PacedStarts, SessionGuard } from "@forage/identity/session-guard";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { HostPort } from "../config.ts";
import { Admission } from "../rpc/admission.ts";
import type { Caller } from "../rpc/caller.ts";
import { type ServeOptions, serve } from "../rpc/serve.ts";
import { PROVEN_STREAMS, serverOptions } from "../rpc/server-options.ts";
import type { DestinationOptions } from "./get.ts";
import { destinationService, SharedDestinationService } from "./service.ts";

export interface PlainDestination {
  readonly address: HostPort;
  /** Stops accepting, asks clients to leave, and cuts those off that are still there after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface PlainListenerOptions extends ServeOptions {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** For tests. */
  readonly maxCallsPerClient?: number;
}

/** About 40 KB each. Every proxy of a host has one connection; processes of the host's network have a few more. */
const MAX_CONNECTIONS = 4_096;
/** A part of the coordinator's 50,000 streams. The rest is for nodes and tokens on the TLS port. */
const MAX_CALLS = 30_000;

/** Every process that reaches a loopback address of this host may look up where services answer, and nothing else. */
const NEIGHBOUR: Caller = {
  kind: "user",
  name: "neighbour",
  grants: [{ role: "destination-reader", namespaces: "*" }],
};

/** Destination in plain text, as proxies expect of a neighbour on their own host. The configuration allows loopback only. */
export async function startPlainDestination(
  listen: HostPort,
  options: DestinationOptions,
  { schedule, maxCallsPerClient, ...serving }: PlainListenerOptions,
): Promise<PlainDestination> {
  const identify = () => NEIGHBOUR;
  const admission = new Admission({
    identify,
    // There are no names here, so each connection is a client of its own.
    clientOf: (_caller, peer) => `the connection from ${peer}`,
    schedule,
    limits: { maxCalls: MAX_CALLS, ...(maxCallsPerClient && { maxCallsPerClient }) },
  });
  const server = new Server(serverOptions(PROVEN_STREAMS, [admission.interceptor]));
  const { streamOf } = admission;
  serve(server, SharedDestinationService, destinationService(options), { ...serving, identify, streamOf });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const { monotonicMs, log } = serving;
  const offenders = new Offenders();
  new SessionGuard(server, {
    offenders,
    monotonicMs,
    onOffence: (remoteAddress, reason) => log.debug({ event: "connection-cut", remoteAddress, reason }),
  });
  const start = (socket: Socket): void => {
    injector.injectConnection(socket);
    // It is paused, so that a connection that waits keeps nothing in memory.
    socket.read(0);
  };
  const starts = new PacedStarts({ offenders, monotonicMs, schedule, start });
  const net = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => {
    socket.on("error", () => {});
    starts.add(socket);
  });
  net.maxConnections = MAX_CONNECTIONS;
  const address = await listening(net, listen);
  return {
    address,
    close: async (graceMs) => {
      net.close();
      starts.close();
      injector.destroy();
      await shutDown(server, graceMs);
    },
  };
}

function listening(net: NetServer, { host, port }: HostPort): Promise<HostPort> {
  return new Promise((resolve, reject) => {
    net.once("error", reject);
    net.listen(port, host, () => {
      net.removeListener("error", reject).on("error", () => {});
      resolve({ host, port: (net.address() as AddressInfo).port });
    });
  });
}

/** The library waits for clients that stopped reading, and at times for one that has just gone; neither may hold up the end. */
function shutDown(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
