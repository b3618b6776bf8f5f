import type { CallContext } from "./caller.ts";

/**
 * A handler whose responses are encoded already. Streams that get the same bytes share one copy of them, also while their clients
 * don't read.
 */
export interface FramesHandler<Q> {
  frames(request: Q, context: CallContext): AsyncIterable<Uint8Array>;
}
