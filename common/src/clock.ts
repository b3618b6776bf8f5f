/** The clock of a part that measures durations only. A step of the wall clock does not affect it. */
export interface MonotonicClock {
  /** Milliseconds since a fixed moment. Never goes back; only differences have a meaning. */
  monotonicMs(): number;
  /**
   * Calls `run` once after `delayMs`, however long the delay is; `Infinity` never calls it. Returns a function that cancels the
   * call.
   */
  schedule(delayMs: number, run: () => void): () => void;
}

/** Time as every part of Forage reads it. Programs pass `systemClock`; tests, simulations and dry runs pass a `VirtualClock`. */
export interface Clock extends MonotonicClock {
  /** Wall clock in milliseconds since the epoch, for records and people. It can step in both directions. */
  nowMs(): number;
}

/** `setTimeout` fires at once for delays above 2^31-1 ms (24.8 days). */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule: scheduleTimeout,
};

/** Resolves after `delayMs`, or at once when the signal aborts. */
export function pause(clock: MonotonicClock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.schedule(delayMs, done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** Splits a delay that one timer can't hold into several timers. */
function scheduleTimeout(delayMs: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (restMs: number): void => {
    const nextMs = Math.min(restMs, MAX_TIMEOUT_MS);
    timer = setTimeout(() => (restMs > nextMs ? arm(restMs - nextMs) : run()), nextMs);
  };
  arm(Math.max(0, delayMs));
  return () => clearTimeout(timer);
}
