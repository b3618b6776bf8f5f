import type { ServerDuplexStream, ServerReadableStream } from "@grpc/grpc-js";

/**
 * The number of requests read before the handler takes them. Beyond it, flow control stops the
 * client.
 */
const MAX_BUFFERED = 16;

/**
 * Yields the stream of requests. Ends with the client's half-close, its cancellation or the signal.
 * Throws if `check` throws for a request. A generator of its own for checks would cost each heartbeat
 * of an agent three more promises.
 */
export async function* requestsOf<T>(
  call: ServerDuplexStream<T, unknown> | ServerReadableStream<T, unknown>,
  signal: AbortSignal,
  check: (request: T) => void = () => {},
): AsyncGenerator<T> {
  const buffered: T[] = [];
  let ended = signal.aborted;
  let wake = (): void => {};
  const end = (): void => {
    ended = true;
    wake();
  };
  call.on("data", (request: T) => {
    buffered.push(request);
    if (buffered.length >= MAX_BUFFERED) call.pause();
    wake();
  });
  for (const event of ["end", "error", "close", "cancelled"]) call.on(event, end);
  signal.addEventListener("abort", end, { once: true });
  try {
    while (true) {
      const next = buffered.shift();
      if (next !== undefined) {
        check(next);
        yield next;
        continue;
      }
      if (ended) return;
      if (call.isPaused()) call.resume();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/**
 * Waits until the client reads again, so that a slow client slows its producer and nothing
 * accumulates.
 */
export function drained(
  call: {
    once(event: string, listener: () => void): unknown;
    off(event: string, listener: () => void): unknown;
  },
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      call.off("drain", finish);
      call.off("close", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    if (signal.aborted) return resolve();
    call.once("drain", finish);
    call.once("close", finish);
    signal.addEventListener("abort", finish, { once: true });
  });
}

/** Resolves when `send` calls back, or when the call has ended and the callback may never come. */
export function untilAccepted(send: (taken: () => void) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      signal.removeEventListener("abort", finish);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", finish, { once: true });
    send(finish);
  });
}
