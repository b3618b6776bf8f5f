import { messageOf } from "@forage/common/message-of";
import { channelCredentials, withBearer } from "@forage/identity/credentials";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client, type ClientDuplexStream } from "@grpc/grpc-js";
import type { Endpoint } from "../config/settings.ts";
import { CliError } from "../errors.ts";
import { type CallLimits, duplex, type MethodOf, serverStream, unary } from "./call.ts";
import { Servers } from "./servers.ts";

/**
 * The time limit of a request. Most answers take milliseconds, so beyond this the coordinator or
 * the network hangs.
 */
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * Keep-alive settings that detect within 25 s that the other end of an idle stream is gone, so that
 * the stream can be opened again.
 */
const KEEPALIVE = { "grpc.keepalive_time_ms": 15_000, "grpc.keepalive_timeout_ms": 10_000 };
/**
 * The delays between connection attempts. The defaults of up to two minutes would delay the use of
 * a restarted coordinator.
 */
const RECONNECT = { "grpc.initial_reconnect_backoff_ms": 200, "grpc.max_reconnect_backoff_ms": 2_000 };
/** The size limit of a response, enough for the listing of a large fleet. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

export const operator = OperatorServiceService;
export const forest = ForageServiceService;

export interface CoordinatorOptions {
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Replaces the default time limit of each request. */
  readonly timeoutMs: number | undefined;
  /**
   * Called once when an answer may be out of date because no leader can be reached. Default: does
   * nothing.
   */
  readonly onStale?: (() => void) | undefined;
}

/**
 * The connection of one command to any of the cluster's coordinators. All its errors are CliErrors.
 */
export class Coordinator {
  readonly #endpoint: Endpoint;
  readonly #servers: Servers;
  readonly #options: CoordinatorOptions;
  #hasWarned = false;

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

  /** The settings, with the address of the coordinator that is currently used. */
  get endpoint(): Endpoint {
    return { ...this.#endpoint, server: this.#servers.current.address };
  }

  /** Makes a call. `limitMs` replaces the time limit of the request. */
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
        // A stream that has started had a connection, so its error is thrown.
        await attempt.failed(error);
      }
    }
  }

  /**
   * Opens a bidirectional stream, which the caller handles. Its errors are those of grpc-js;
   * `explain` converts them to CliErrors.
   */
  async duplex<Request, Response>(
    method: MethodOf<Request, Response>,
  ): Promise<ClientDuplexStream<Request, Response>> {
    const { signal } = this.#options;
    return duplex(await this.#servers.connected(signal, this.#timeoutMs), method, this.#limits(signal));
  }

  close(): void {
    this.#servers.close();
  }

  #warnOnce(onStale: () => void): void {
    if (!this.#hasWarned) onStale();
    this.#hasWarned = true;
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? REQUEST_TIMEOUT_MS;
  }

  #limits(signal: AbortSignal): CallLimits {
    const { nowMs, onStale } = this.#options;
    return { signal, nowMs, onStale: onStale && (() => this.#warnOnce(onStale)) };
  }
}
