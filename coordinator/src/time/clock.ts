/** Time as control loops see it, so that tests and simulations can run it by hand. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: for records and people. */
  nowMs(): number;
  /** Never goes back: for intervals. */
  monotonicMs(): number;
  /** Calls once after the delay, however long it is; Infinity never calls. Returns how to cancel. */
  schedule(delayMs: number, run: () => void): () => void;
}

/** `setTimeout` fires at once for delays above 2^31-1 ms (24.8 days). */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    schedule: scheduleTimeout,
  };
}

/** Splits a delay that one timer can't hold into several timers. */
function scheduleTimeout(delayMs: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (restMs: number): void => {
    const nextMs = Math.min(restMs, MAX_TIMEOUT_MS);
    timer = setTimeout(() => (restMs > nextMs ? arm(restMs - nextMs) : run()), nextMs);
  };
  arm(delayMs);
  return () => clearTimeout(timer);
}
