import type { CallContext } from "./caller.ts";

/** Receives the messages of a pushed stream. */
export interface Sink<R> {
  /**
   * Sends a message, and calls `onAccepted` once the transport has accepted it. A sender that waits for
   * this call queues nothing.
   */
  send(message: R, onAccepted: () => void): void;
  /** Ends the stream with the error's status. */
  fail(error: unknown): void;
}

/**
 * A handler of a method with thousands of concurrent streams. It pushes messages, because a
 * generator with its promises would be too expensive.
 */
export interface PushHandler<Q, R> {
  /**
   * Starts a stream. Returns a function that stops it, called when the client disconnects or the
   * server stops. Throws the error that refuses the call.
   */
  push(request: Q, context: Omit<CallContext, "signal">, sink: Sink<R>): () => void;
}
