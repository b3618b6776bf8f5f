import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  ServerDuplexStream,
  ServerWritableStream,
} from "@grpc/grpc-js";
import { toStatus } from "./to-status.ts";

/** Receives the errors of calls, before they are mapped to a status. */
export type OnCallError = (method: string, error: unknown) => void;

/** Returns a handler for a unary call that calls an async function. The signal aborts when the caller cancels. */
export function unary<Request, Response>(
  method: string,
  onError: OnCallError,
  run: (request: Request, signal: AbortSignal) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const gone = new AbortController();
    call.on("cancelled", () => gone.abort());
    Promise.resolve()
      .then(() => run(call.request, gone.signal))
      .then(
        (response) => callback(null, response),
        (error: unknown) => {
          if (!gone.signal.aborted) onError(method, error);
          callback(toStatus(error));
        },
      );
  };
}

/** Returns a handler for a streaming call that pulls from a generator only as fast as the caller reads. */
export function serverStream<Request, Response>(
  method: string,
  onError: OnCallError,
  run: (request: Request, signal: AbortSignal) => AsyncIterable<Response>,
): handleServerStreamingCall<Request, Response> {
  return (call) => pump(method, onError, call, (signal) => run(call.request, signal));
}

/** Returns a handler for a bidirectional call. The caller is slowed down to the speed at which `requests` is read. */
export function duplexStream<Request, Response>(
  method: string,
  onError: OnCallError,
  run: (requests: AsyncIterable<Request>, signal: AbortSignal) => AsyncIterable<Response>,
): handleBidiStreamingCall<Request, Response> {
  return (call) => pump(method, onError, call, (signal) => run(requestsOf(call, signal), signal));
}

function pump<Request, Response>(
  method: string,
  onError: OnCallError,
  call: ServerWritableStream<Request, Response> | ServerDuplexStream<Request, Response>,
  run: (signal: AbortSignal) => AsyncIterable<Response>,
): void {
  const gone = new AbortController();
  for (const event of ["cancelled", "close", "error"]) call.on(event, () => gone.abort());
  const { signal } = gone;
  const send = async (): Promise<void> => {
    for await (const response of run(signal)) {
      if (signal.aborted) return;
      if (!call.write(response)) await drained(call, signal);
    }
  };
  send().then(
    () => call.end(),
    (error: unknown) => {
      if (signal.aborted) return void call.end();
      onError(method, error);
      call.emit("error", toStatus(error));
    },
  );
}

function drained(
  call: ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    call.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/**
 * Yields the requests. If the caller disconnects, the requests end as if all had been sent; the signal distinguishes
 * the two.
 */
async function* requestsOf<Request>(
  call: ServerDuplexStream<Request, unknown>,
  signal: AbortSignal,
): AsyncGenerator<Request> {
  try {
    for await (const request of call) yield request as Request;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
