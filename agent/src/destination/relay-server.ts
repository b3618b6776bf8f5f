import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { Offenders, SessionGuard } from "@forage/identity/session-guard";
import { DestinationService, type GetDestination } from "@forage/proto/destination";
import { Server, ServerCredentials, type ServerWritableStream, status } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import { CallLimits } from "./call-limits.ts";
import type { DestinationRelay, LookupMethod, RelayClient } from "./relay.ts";

export interface RelayServerOptions {
  readonly address: string;
  readonly port: number;
  readonly relay: DestinationRelay;
  /** Returns the pod or host process behind an address. Undefined for any other address, which is not served. */
  readonly clientAt: (address: string) => RelayClient | undefined;
  readonly clock: Pick<Clock, "schedule" | "monotonicMs">;
}

const MAX_CONNECTIONS = 1_024;
/** A proxy has one or two connections; a pod may have a few processes with look-ups of their own. */
const MAX_CONNECTIONS_PER_ADDRESS = 32;
/** Higher than the relay's limit for a client, so that the relay itself rejects the stream with a reason. */
const MAX_STREAMS_PER_CONNECTION = 2_500;
/** 1.5 times the relay's limit for a client, whose rejection gives the reason. Beyond it, calls are rejected unread. */
const MAX_CALLS_PER_ADDRESS = 3_000;
/** 1.5 times the relay's limit of 20,000 streams. */
const MAX_CALLS = 30_000;
/** A look-up fits into one packet and comes from this host. */
const FIRST_MESSAGE_MS = 5_000;
const CLOSE_GRACE_MS = 500;
const CHECK_MS = 500;
/** A look-up has a few hundred bytes. */
const MAX_REQUEST_BYTES = 16 * 1024;

const asIs = (bytes: Buffer): Buffer => bytes;
const SERVICE = {
  get: { ...DestinationService.get, responseSerialize: asIs, responseDeserialize: asIs },
  getProfile: { ...DestinationService.getProfile, responseSerialize: asIs, responseDeserialize: asIs },
} as const;

/** Serves Destination without TLS at one address of this host. */
export class RelayServer {
  readonly #net: NetServer;
  readonly #grpc: Server;
  readonly #sockets = new Map<string, Set<Socket>>();
  readonly #guard: SessionGuard;
  readonly #schedule: Clock["schedule"];
  #stopChecks: () => void;

  private constructor({ relay, clientAt, clock }: RelayServerOptions) {
    const limits = new CallLimits({
      clock,
      maxCalls: MAX_CALLS,
      maxCallsPerAddress: MAX_CALLS_PER_ADDRESS,
      firstMessageMs: FIRST_MESSAGE_MS,
    });
    this.#grpc = new Server({
      interceptors: [limits.interceptor],
      "grpc.max_concurrent_streams": MAX_STREAMS_PER_CONNECTION,
      "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
      "grpc.keepalive_time_ms": 20_000,
      "grpc.keepalive_timeout_ms": 10_000,
      "grpc.enable_channelz": 0,
    });
    const serve = (method: LookupMethod) => (call: ServerWritableStream<GetDestination, Buffer>) =>
      serveLookup(method, call, relay, clientAt);
    this.#grpc.addService(SERVICE, { get: serve("get"), getProfile: serve("getProfile") });
    const injector = this.#grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const offenders = new Offenders();
    const { monotonicMs } = clock;
    this.#guard = new SessionGuard(this.#grpc, { offenders, monotonicMs });
    this.#schedule = clock.schedule;
    this.#stopChecks = this.#schedule(CHECK_MS, () => this.#check());
    this.#net = createServer({ noDelay: true }, (socket) => {
      socket.on("error", () => undefined);
      const address = socket.remoteAddress ?? "";
      // A pod has its own address, so after an abuse its connections are closed until a new one may start.
      const mayStart = clientAt(address) !== undefined && offenders.tryStart(address, monotonicMs());
      if (!mayStart || !this.#enter(socket, address)) socket.destroy();
      else injector.injectConnection(socket);
    });
    this.#net.maxConnections = MAX_CONNECTIONS;
  }

  /**
   * Listens on the address. Rejects while that is impossible, for example because the host doesn't have the address
   * yet.
   */
  static async open(options: RelayServerOptions): Promise<RelayServer> {
    const server = new RelayServer(options);
    server.#net.listen(options.port, options.address);
    try {
      await once(server.#net, "listening");
    } catch (error) {
      server.#stopChecks();
      server.#grpc.forceShutdown();
      throw error;
    }
    server.#net.on("error", () => undefined);
    return server;
  }

  get port(): number {
    return (this.#net.address() as AddressInfo).port;
  }

  /** Ends all streams. Proxies keep their state and reconnect. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#net.close(() => resolve()));
    this.#stopChecks();
    this.#grpc.forceShutdown();
    const cut = setTimeout(() => {
      for (const sockets of this.#sockets.values()) for (const socket of sockets) socket.destroy();
    }, CLOSE_GRACE_MS);
    await closed;
    clearTimeout(cut);
  }

  #check(): void {
    this.#guard.checkOverhead();
    this.#stopChecks = this.#schedule(CHECK_MS, () => this.#check());
  }

  #enter(socket: Socket, address: string): boolean {
    const sockets = this.#sockets.get(address) ?? new Set();
    if (sockets.size >= MAX_CONNECTIONS_PER_ADDRESS) return false;
    this.#sockets.set(address, sockets.add(socket));
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0) this.#sockets.delete(address);
    });
    return true;
  }
}

function serveLookup(
  method: LookupMethod,
  call: ServerWritableStream<GetDestination, Buffer>,
  relay: DestinationRelay,
  clientAt: (address: string) => RelayClient | undefined,
): void {
  const peer = call.getPeer();
  const client = clientAt(peer.slice(0, peer.lastIndexOf(":")));
  const fail = (error: { readonly code: number; readonly details: string }): void =>
    void call.emit("error", error);
  if (client === undefined) {
    fail({ code: status.UNAUTHENTICATED, details: "only pods of this host are served here" });
    return;
  }
  let stop: (() => void) | undefined;
  let over = false;
  const end = (): void => {
    over = true;
    stop?.();
  };
  call.on("cancelled", end);
  call.on("close", end);
  call.on("error", end);
  stop = relay.read(method, call.request, client, {
    send: (message, onAccepted) => void call.write(message, () => onAccepted()),
    fail,
  });
  if (over) stop?.();
}
