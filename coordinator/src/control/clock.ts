/** Time as control loops see it, so that tests and simulations can run it by hand. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: for records and people. */
  nowMs(): number;
  /** Never goes back: for intervals. */
  monotonicMs(): number;
  /** Calls once after the delay; returns how to cancel. */
  schedule(delayMs: number, run: () => void): () => void;
}

export function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    schedule: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
  };
}
