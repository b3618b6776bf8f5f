/** A call that goes on, until `over`. */
export interface OpenCall {
  /** Aborted by `abort`, and when the server stops. */
  readonly signal: AbortSignal;
  readonly abort: () => void;
  readonly over: () => void;
}

/**
 * Aborts the calls that are open when the server stops. It has one listener for all of them: each listener of a signal makes the
 * next slower, and `AbortSignal.any` leaves something in the server's signal for each call, for as long as the server runs.
 */
export class OpenCalls {
  readonly #stopping: AbortSignal;
  readonly #open = new Set<AbortController>();

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
    const endAll = (): void => {
      for (const call of this.#open) call.abort(stopping.reason);
    };
    stopping.addEventListener("abort", endAll, { once: true });
  }

  get size(): number {
    return this.#open.size;
  }

  open(): OpenCall {
    const call = new AbortController();
    this.#open.add(call);
    if (this.#stopping.aborted) call.abort(this.#stopping.reason);
    return { signal: call.signal, abort: () => call.abort(), over: () => void this.#open.delete(call) };
  }
}
