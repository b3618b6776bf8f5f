/** An open call, until `over` is called. */
export interface OpenCall {
  /** The signal of the call, aborted by `abort` and when the server stops. */
  readonly signal: AbortSignal;
  readonly abort: () => void;
  readonly over: () => void;
}

/**
 * Aborts all open calls when the server stops. One listener serves all of them: every listener of a
 * signal slows the addition of the next, and `AbortSignal.any` leaves an entry in the server's
 * signal for each call as long as the server runs.
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
