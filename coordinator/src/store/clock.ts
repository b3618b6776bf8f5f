/** Time as the store sees it. Never the wall clock: a jump of it must not end a lease. */
export interface Clock {
  /** Milliseconds since any fixed moment; never goes back. */
  monotonicMs(): number;
  /** Calls once after the delay; returns how to cancel. */
  schedule(delayMs: number, run: () => void): () => void;
}
