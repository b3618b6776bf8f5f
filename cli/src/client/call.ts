import type { EventEmitter } from "node:events";
import { STALE_HEADER } from "@forage/common/stale-header";
import {
  type CallOptions,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  Metadata,
} from "@grpc/grpc-js";

/** A method of a generated service definition. */
export interface MethodOf<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

export interface CallLimits {
  readonly signal: AbortSignal;
  /** The time limit. If absent, the call has none. */
  readonly timeoutMs?: number | undefined;
  readonly nowMs: () => number;
  /**
   * Called when the answer comes from a coordinator that can't reach the leader. Default: does
   * nothing.
   */
  readonly onStale?: (() => void) | undefined;
}

/**
 * Makes a call with one response. Rejects with grpc-js's ServiceError; an aborted signal results in
 * CANCELLED.
 */
export function unary<Request, Response>(
  client: Client,
  method: MethodOf<Request, Response>,
  request: Request,
  limits: CallLimits,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      new Metadata(),
      callOptions(limits),
      (error, response) => {
        limits.signal.removeEventListener("abort", cancel);
        if (error !== null) reject(error);
        else if (response === undefined)
          reject(new TypeError(`${method.path} gave neither response nor error`));
        else resolve(response);
      },
    );
    observeStale(call, limits);
    const cancel = (): void => call.cancel();
    if (limits.signal.aborted) cancel();
    limits.signal.addEventListener("abort", cancel, { once: true });
  });
}

function observeStale(call: EventEmitter, { onStale }: CallLimits): void {
  if (onStale === undefined) return;
  call.once("metadata", (headers: Metadata) => {
    if (headers.get(STALE_HEADER).length > 0) onStale();
  });
}

/**
 * Yields the responses of a stream. They are read only as fast as the caller reads; leaving the
 * loop cancels the call.
 */
export async function* serverStream<Request, Response>(
  client: Client,
  method: MethodOf<Request, Response>,
  request: Request,
  limits: CallLimits,
): AsyncGenerator<Response> {
  const call: ClientReadableStream<Response> = client.makeServerStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    request,
    new Metadata(),
    callOptions(limits),
  );
  observeStale(call, limits);
  // A cancellation after the end of the loop emits an error, which needs a listener.
  call.on("error", () => {});
  const cancel = (): void => call.cancel();
  if (limits.signal.aborted) cancel();
  limits.signal.addEventListener("abort", cancel, { once: true });
  try {
    for await (const message of call) yield message as Response;
  } finally {
    limits.signal.removeEventListener("abort", cancel);
    call.cancel();
  }
}

/** Opens a bidirectional stream. The caller handles its errors and its end. */
export function duplex<Request, Response>(
  client: Client,
  method: MethodOf<Request, Response>,
  limits: CallLimits,
): ClientDuplexStream<Request, Response> {
  return client.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    new Metadata(),
    callOptions(limits),
  );
}

/**
 * The longest deadline that the server's timers support. A longer one would expire there
 * immediately.
 */
const MAX_DEADLINE_MS = 24 * 86_400_000;

function callOptions({ timeoutMs, nowMs }: CallLimits): CallOptions {
  return timeoutMs === undefined ? {} : { deadline: nowMs() + Math.min(timeoutMs, MAX_DEADLINE_MS) };
}
