import type { CallContext } from "./caller.ts";

/**
 * A handler that yields encoded responses. Streams with the same response share one copy of its
 * bytes, even while their clients do not read.
 */
export interface FramesHandler<Q> {
  frames(request: Q, context: CallContext): AsyncIterable<Uint8Array>;
}
