import type { CallContext } from "./caller.ts";

/** Receives the messages of a pushed stream. */
export interface Sink<R> {
  /** Calls back once the transport has taken the message. A sender that waits for that before the next piles nothing up. */
  send(message: R, taken: () => void): void;
  /** Ends the stream with the error's status. */
  fail(error: unknown): void;
}

/** A handler of a call with thousands of streams. It pushes messages, because a generator with its promises would cost too much. */
export interface PushHandler<Q, R> {
  /** Throws what refuses the call. Returns how to stop, for when the client has gone or the server stops. */
  push(request: Q, context: Omit<CallContext, "signal">, sink: Sink<R>): () => void;
}
