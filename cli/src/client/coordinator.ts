import { messageOf } from "@forage/common/message-of";
import { channelCredentials, withBearer } from "@forage/identity/credentials";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client, type ClientDuplexStream } from "@grpc/grpc-js";
import type { Endpoint } from "../config/settings.ts";
import { CliError } from "../errors.ts";
import { type CallLimits, duplex, type MethodOf, serverStream, unary } from "./call.ts";
import { Servers } from "./servers.ts";

/** One answer takes milliseconds; beyond this the coordinator or the network hangs. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Finds out within 25 s that a quiet stream's other end has gone, so that it can be opened again. */
const KEEPALIVE = { "grpc.keepalive_time_ms": 15_000, "grpc.keepalive_timeout_ms": 10_000 };
/** grpc-js would wait up to two minutes between its attempts; a coordinator that is back should be found at once. */
const RECONNECT = { "grpc.initial_reconnect_backoff_ms": 200, "grpc.max_reconnect_backoff_ms": 2_000 };
/** A large fleet's listing; the server sends no more than it has. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

export const operator = OperatorServiceService;
export const forest = ForageServiceService;

export interface CoordinatorOptions {
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Replaces the usual time limit of each request. */
  readonly timeoutMs: number | undefined;
  /** Called once when an answer may be out of date, because no coordinator that leads can be reached. Default: nothing is called. */
  readonly onStale?: (() => void) | undefined;
}

/** The connection of one command, to any of the cluster's coordinators. Everything it throws is a CliError. */
export class Coordinator {
  readonly #endpoint: Endpoint;
  readonly #servers: Servers;
  readonly #options: CoordinatorOptions;
  #isStaleTold = false;

  constructor(endpoint: Endpoint, options: CoordinatorOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
    try {
      const credentials = withBearer(channelCredentials({ caPem: endpoint.caPem }), endpoint.token);
      const channelOptions = {
        ...KEEPALIVE,
        ...RECONNECT,
        "grpc.max_receive_message_length": MAX_RESPONSE_BYTES,
      };
      const servers = [endpoint.server, ...endpoint.otherServers].map((address) => ({
        address,
        client: new Client(`dns:${address}`, credentials, channelOptions),
      }));
      this.#servers = new Servers({ servers, endpoint, nowMs: options.nowMs });
    } catch (error) {
      const reason = messageOf(error);
      throw new CliError("CONFIG", `the CA file ${endpoint.caFile} can't be used: ${reason}`, {
        cause: error,
      });
    }
  }

  /** The settings, with the address of the coordinator that is used at the moment. */
  get endpoint(): Endpoint {
    return { ...this.#endpoint, server: this.#servers.current.address };
  }

  /** `limitMs` replaces the time limit of the request. */
  async call<Request, Response>(
    method: MethodOf<Request, Response>,
    request: Request,
    limitMs?: number,
  ): Promise<Response> {
    const { signal, nowMs } = this.#options;
    const timeoutMs = limitMs ?? this.#timeoutMs;
    const endMs = nowMs() + timeoutMs;
    const attempt = this.#servers.attempt(signal, timeoutMs);
    while (true) {
      try {
        const client = await attempt.connected();
        const limits = { ...this.#limits(signal), timeoutMs: endMs - nowMs() };
        return await unary(client, method, request, limits);
      } catch (error) {
        await attempt.failed(error);
      }
    }
  }

  async *stream<Request, Response>(
    method: MethodOf<Request, Response>,
    request: Request,
    signal = this.#options.signal,
  ): AsyncGenerator<Response> {
    const attempt = this.#servers.attempt(signal, this.#timeoutMs);
    while (true) {
      try {
        yield* serverStream(await attempt.connected(), method, request, this.#limits(signal));
        return;
      } catch (error) {
        // A stream that has begun had a connection, so that its error is thrown.
        await attempt.failed(error);
      }
    }
  }

  /** The caller owns the stream. Errors of the stream are those of grpc-js, which `explain` turns into a CliError. */
  async duplex<Request, Response>(
    method: MethodOf<Request, Response>,
  ): Promise<ClientDuplexStream<Request, Response>> {
    const { signal } = this.#options;
    return duplex(await this.#servers.connected(signal, this.#timeoutMs), method, this.#limits(signal));
  }

  close(): void {
    this.#servers.close();
  }

  #tellStale(onStale: () => void): void {
    if (!this.#isStaleTold) onStale();
    this.#isStaleTold = true;
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? REQUEST_TIMEOUT_MS;
  }

  #limits(signal: AbortSignal): CallLimits {
    const { nowMs, onStale } = this.#options;
    return { signal, nowMs, onStale: onStale && (() => this.#tellStale(onStale)) };
  }
}
