import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { Offenders, PacedStarts } from "@forage/identity/session-guard";
import type { HostPort } from "../config.ts";
import type { CloseReason } from "../http2/connection-error.ts";
import { DEFAULT_CALL_LIMITS } from "../rpc/admission.ts";
import type { CallObserver } from "../rpc/call-observer.ts";
import type { Caller } from "../rpc/caller.ts";
import { PushServer } from "../rpc/push-server/push-server.ts";
import { PROVEN_STREAMS } from "../rpc/server-options.ts";
import type { DestinationOptions } from "./get.ts";
import { destinationMethods } from "./service.ts";

export interface PlainDestination {
  readonly address: HostPort;
  /**
   * Stops accepting connections, requests that clients disconnect, and closes the remaining
   * connections after `graceMs`.
   */
  close(graceMs: number): Promise<void>;
}

export interface PlainListenerOptions extends CallObserver {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Aborts when the server stops. Open streams then end with OK. */
  readonly stopping: AbortSignal;
  /**
   * Counts connections that were closed because of their clients' behaviour. For STALLED, counts
   * streams.
   */
  readonly observeCut?: (reason: string, count?: number) => void;
  /** The limit of open calls per client, which tests lower. */
  readonly maxCallsPerClient?: number;
}

/**
 * The most connections, about 10 KB each. Each proxy of the host has one, and processes on the
 * host's network have a few more.
 */
const MAX_CONNECTIONS = 4_096;
/**
 * The most streams: a part of the coordinator's 50,000. The others are for nodes and tokens on the
 * TLS port.
 */
const MAX_CALLS = 30_000;
/**
 * The time between two new connections after a connection was closed for its behaviour. A
 * connection uses up to 1.6 ms of CPU on a busy machine until it is closed, so an attacker that
 * reconnects can use at most a sixth of a core.
 */
const START_INTERVAL_MS = 10;
/** Reasons to close a connection that indicate no attack by its peer. */
const HARMLESS: ReadonlySet<CloseReason> = new Set(["KEEPALIVE", "HANDSHAKE", "INTERNAL"]);

/**
 * The caller of all calls to the plain listener. Every process that can reach a loopback address of
 * this host may look up endpoints, and has no other permission.
 */
const NEIGHBOUR: Caller = {
  type: "user",
  name: "neighbour",
  grants: [{ role: "destination-reader", namespaces: "*" }],
};

/**
 * Serves Destination in plain text on this host, as proxies expect. The configuration allows only
 * loopback addresses.
 */
export async function startPlainDestination(
  listen: HostPort,
  options: DestinationOptions,
  { schedule, stopping, observeCut, maxCallsPerClient, ...observer }: PlainListenerOptions,
): Promise<PlainDestination> {
  const { monotonicMs, log } = observer;
  const offenders = new Offenders(START_INTERVAL_MS);
  const server = new PushServer(destinationMethods(options), {
    ...observer,
    caller: NEIGHBOUR,
    schedule,
    maxCalls: MAX_CALLS,
    maxCallsPerConnection: maxCallsPerClient ?? DEFAULT_CALL_LIMITS.maxCallsPerClient,
    maxStreams: PROVEN_STREAMS,
    firstMessageMs: DEFAULT_CALL_LIMITS.firstMessageMs,
    onFailure: (remoteAddress, { reason, message: problem, cause: err }) => {
      if (!HARMLESS.has(reason)) offenders.offend(remoteAddress, monotonicMs());
      observeCut?.(reason);
      if (reason === "INTERNAL") log.error({ event: "connection-failed", reason: problem, err });
      else log.debug({ event: "connection-cut", remoteAddress, reason, problem });
    },
    onStalled: (streams) => {
      observeCut?.("STALLED", streams);
      log.debug({ event: "stalled-streams-reset", streams });
    },
  });
  const finishCalls = (): void => server.finishCalls();
  stopping.addEventListener("abort", finishCalls, { once: true });
  const start = (socket: Socket): void => {
    const { remoteAddress: address = "", remotePort: port = 0 } = socket;
    server.accept(socket, { address, port, isPaced: offenders.isPaced(address, monotonicMs()) });
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
      stopping.removeEventListener("abort", finishCalls);
      await server.close(graceMs);
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
