/** A clock for measuring durations only. Changes of the wall clock do not affect it. */
export interface MonotonicClock {
  /** Milliseconds since a fixed moment. Never decreases; only differences are meaningful. */
  monotonicMs(): number;
  /**
   * Calls `run` once after `delayMs`, however long that is; `Infinity` never calls it. Returns a function that cancels
   * the call.
   */
  schedule(delayMs: number, run: () => void): () => void;
}

/**
 * The clock that every part of Forage uses. Programs pass `systemClock`; tests, simulations and dry runs pass a
 * `VirtualClock`.
 */
export interface Clock extends MonotonicClock {
  /** The wall clock in milliseconds since the epoch, for records and people. It can jump in both directions. */
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

/** Splits a delay that is too long for one timer into several timers. */
function scheduleTimeout(delayMs: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (restMs: number): void => {
    const nextMs = Math.min(restMs, MAX_TIMEOUT_MS);
    timer = setTimeout(() => (restMs > nextMs ? arm(restMs - nextMs) : run()), nextMs);
  };
  arm(Math.max(0, delayMs));
  return () => clearTimeout(timer);
}
