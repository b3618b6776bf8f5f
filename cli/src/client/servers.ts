import { type Client, connectivityState, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { Endpoint } from "../config/settings.ts";
import { CallError, explainFully } from "./explain.ts";

/** A channel to one of the coordinators. */
export interface Server {
  /** The address as `host:port`. */
  readonly address: string;
  readonly client: Client;
}

export interface ServersOptions {
  /** The coordinators in the order in which they are tried. Never empty. */
  readonly servers: readonly Server[];
  readonly endpoint: Endpoint;
  readonly nowMs: () => number;
}

/**
 * The time limit of a connection attempt. A running coordinator answers within milliseconds, or
 * within a second on another continent.
 */
const CONNECT_LIMIT_MS = 3_000;

/**
 * The coordinators of a cluster. One is used until it is unreachable or answers UNAVAILABLE; then
 * the next one is used.
 */
export class Servers {
  readonly #options: ServersOptions;
  #at = 0;

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  get current(): Server {
    return this.#get(this.#at);
  }

  /**
   * Starts a call that may try each coordinator once. `limitMs` is the time limit for connecting to
   * all of them.
   */
  attempt(signal: AbortSignal, limitMs: number): Attempt {
    const { endpoint, nowMs, servers } = this.#options;
    const first = this.#at;
    const connectMs = Math.min(CONNECT_LIMIT_MS, limitMs / servers.length);
    const failures: CallError[] = [];
    let at = first;
    return {
      connected: async () => {
        const { client } = this.#get(at);
        // The call to the last coordinator itself waits for the connection, up to its time limit.
        const isLast = (at + 1) % servers.length === first;
        if (!isLast && !(await isSettled(client, nowMs() + connectMs, signal))) throw notConnected(connectMs);
        return client;
      },
      failed: async (error) => {
        const one = { ...endpoint, server: this.#get(at).address };
        const failure = await explainFully(error, one, signal, nowMs);
        if (!(failure instanceof CallError) || failure.status !== status.UNAVAILABLE) throw failure;
        const next = (at + 1) % servers.length;
        if (this.#at === at) this.#at = next;
        // A request that was sent may have had its effect, so only the caller can decide whether to
        // send it again.
        if (failure.connected) throw failure;
        failures.push(failure);
        if (next === first) throw servers.length === 1 ? failure : this.#noneOf(failures);
        at = next;
      },
    };
  }

  /**
   * Returns a connected channel for a stream that can't be retried. If no coordinator can be
   * reached, the stream will fail with the reason.
   */
  async connected(signal: AbortSignal, limitMs: number): Promise<Client> {
    const { servers, nowMs } = this.#options;
    const connectMs = Math.min(CONNECT_LIMIT_MS, limitMs / servers.length);
    for (let left = servers.length; left > 1; left--) {
      const at = this.#at;
      const { client } = this.#get(at);
      await isSettled(client, nowMs() + connectMs, signal);
      if (isConnected(client) || signal.aborted) return client;
      if (this.#at === at) this.#at = (at + 1) % servers.length;
    }
    return this.current.client;
  }

  close(): void {
    for (const { client } of this.#options.servers) client.close();
  }

  #get(at: number): Server {
    const server = this.#options.servers[at];
    if (server === undefined) throw new RangeError("there is no coordinator");
    return server;
  }

  /**
   * Chooses the error to report. An untrusted certificate is more important than an unreachable
   * coordinator.
   */
  #noneOf(failures: readonly CallError[]): CallError {
    const [first] = failures;
    const failure = failures.find(({ code }) => code === "UNTRUSTED") ?? first;
    if (failure === undefined) throw new RangeError("there is no coordinator");
    const all = this.#options.servers.map(({ address }) => address).join(", ");
    const message = `none of ${all} can be reached: ${failure.message}`;
    return new CallError(failure.code, message, failure.cause as ServiceError);
  }
}

export interface Attempt {
  /**
   * Returns a channel that is connected, or one that failed to connect and will report the reason
   * in the call.
   */
  connected(): Promise<Client>;
  /**
   * Handles the error of `connected` or of the call. Resolves if the next coordinator can be tried;
   * otherwise throws a CliError.
   */
  failed(error: unknown): Promise<void>;
}

/**
 * Waits until the channel is connected or has failed to connect. Returns false if neither happens
 * before the deadline.
 */
function isSettled(client: Client, deadlineMs: number, signal: AbortSignal): Promise<boolean> {
  const channel = client.getChannel();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const check = (): void => {
    const state = channel.getConnectivityState(true);
    if (state !== connectivityState.IDLE && state !== connectivityState.CONNECTING) resolve(true);
    else
      channel.watchConnectivityState(state, new Date(deadlineMs), (error) =>
        error === undefined ? check() : resolve(false),
      );
  };
  // The signal also cancels the call, which then reports the cancellation.
  const leave = (): void => resolve(true);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  else check();
  return promise.finally(() => signal.removeEventListener("abort", leave));
}

function isConnected(client: Client): boolean {
  return client.getChannel().getConnectivityState(false) === connectivityState.READY;
}

function notConnected(limitMs: number): ServiceError {
  const details = `No connection established. Last error: ETIMEDOUT after ${Math.round(limitMs)} ms`;
  return Object.assign(new Error(details), {
    ...{ code: status.UNAVAILABLE, details, metadata: new Metadata() },
  });
}
