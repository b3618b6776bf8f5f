import { messageOf } from "@forage/common/message-of";
import { channelCredentials, withBearer } from "@forage/identity/credentials";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client, type ClientDuplexStream } from "@grpc/grpc-js";
import type { Endpoint } from "../config/settings.ts";
import { CliError } from "../errors.ts";
import { type CallLimits, duplex, type MethodOf, serverStream, unary } from "./call.ts";
import { explainFully } from "./explain.ts";

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
}

/** The connection of one command. Everything it throws is a CliError. */
export class Coordinator {
  readonly endpoint: Endpoint;
  readonly #client: Client;
  readonly #options: CoordinatorOptions;

  constructor(endpoint: Endpoint, options: CoordinatorOptions) {
    this.endpoint = endpoint;
    this.#options = options;
    try {
      const credentials = withBearer(channelCredentials({ caPem: endpoint.caPem }), endpoint.token);
      this.#client = new Client(`dns:${endpoint.server}`, credentials, {
        ...KEEPALIVE,
        ...RECONNECT,
        "grpc.max_receive_message_length": MAX_RESPONSE_BYTES,
      });
    } catch (error) {
      const reason = messageOf(error);
      throw new CliError("CONFIG", `the CA file ${endpoint.caFile} can't be used: ${reason}`, {
        cause: error,
      });
    }
  }

  async call<Request, Response>(method: MethodOf<Request, Response>, request: Request): Promise<Response> {
    const timeoutMs = this.#options.timeoutMs ?? REQUEST_TIMEOUT_MS;
    try {
      return await unary(this.#client, method, request, { ...this.#limits(this.#options.signal), timeoutMs });
    } catch (error) {
      throw await explainFully(error, this.endpoint, this.#options.signal, this.#options.nowMs);
    }
  }

  async *stream<Request, Response>(
    method: MethodOf<Request, Response>,
    request: Request,
    signal = this.#options.signal,
  ): AsyncGenerator<Response> {
    try {
      yield* serverStream(this.#client, method, request, this.#limits(signal));
    } catch (error) {
      throw await explainFully(error, this.endpoint, signal, this.#options.nowMs);
    }
  }

  duplex<Request, Response>(method: MethodOf<Request, Response>): ClientDuplexStream<Request, Response> {
    return duplex(this.#client, method, this.#limits(this.#options.signal));
  }

  close(): void {
    this.#client.close();
  }

  #limits(signal: AbortSignal): CallLimits {
    return { signal, nowMs: this.#options.nowMs };
  }
}
