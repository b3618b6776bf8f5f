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
  /** Stops accepting, asks clients to leave, and cuts those off that are still there after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface PlainListenerOptions extends CallObserver {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Aborted when the server stops: open streams then end with OK. */
  readonly stopping: AbortSignal;
  /** Counts connections, or for STALLED streams, that are ended because of what their clients do. */
  readonly observeCut?: (reason: string, count?: number) => void;
  /** The limit of calls per client. For tests. */
  readonly maxCallsPerClient?: number;
}

/** About 10 KB each. Every proxy of a host has one connection; processes of the host's network have a few more. */
const MAX_CONNECTIONS = 4_096;
/** A part of the coordinator's 50,000 streams. The rest is for nodes and tokens on the TLS port. */
const MAX_CALLS = 30_000;
/**
 * The time between two connections of this host after one of its connections was cut. Accepting one, and what it may do before
 * it is cut, takes 1.6 ms of CPU on a busy machine, so an attacker that reconnects takes a sixth of a core at most.
 */
const START_INTERVAL_MS = 10;
/** Reasons for the end of a connection that say nothing about its peer's intentions. */
const HARMLESS: ReadonlySet<CloseReason> = new Set(["KEEPALIVE", "HANDSHAKE", "INTERNAL"]);

/**
 * The caller of the plain listener. Every process that reaches a loopback address of this host may look up where services
 * answer, and nothing else.
 */
const NEIGHBOUR: Caller = {
  kind: "user",
  name: "neighbour",
  grants: [{ role: "destination-reader", namespaces: "*" }],
};

/** Destination in plain text, as proxies expect of a neighbour on their own host. The configuration allows loopback only. */
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
