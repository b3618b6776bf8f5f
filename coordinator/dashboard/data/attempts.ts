import { backOffMs } from "@forage/common/back-off";

export interface AttemptsOptions {
  /** Aborts the attempts and the delays between them. */
  readonly signal: AbortSignal;
  /**
   * Returns the longest delay in milliseconds before the next attempt; undefined if the error is
   * final.
   */
  readonly waitMs: (error: unknown, failures: number) => number | undefined;
  /** Called after each failed attempt. */
  readonly onFailed?: (error: unknown) => void;
  /** Returns a random number from 0 to 1. Default: `Math.random`. */
  readonly random?: () => number;
  /** Resolves after the delay, or rejects when the signal aborts. Default: uses a timer. */
  readonly wait?: (delayMs: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The delays of a page whose coordinator is gone. They spread the load when all its pages connect
 * to another coordinator.
 */
const RECONNECT = { baseMs: 500, capMs: 5_000 };

export function reconnectMs(failures: number): number {
  return backOffMs(failures, RECONNECT);
}

/**
 * Repeats an attempt until it succeeds, with full jitter between the attempts. The attempt calls
 * `opened` once a stream is open, which resets the count of failures. Resolves also when the signal
 * aborts. Throws a final error.
 */
export async function attempts(
  attempt: (opened: () => void) => Promise<void>,
  options: AttemptsOptions,
): Promise<void> {
  const { signal, waitMs, onFailed, random = Math.random, wait = delay } = options;
  let failures = 0;
  while (!signal.aborted) {
    try {
      return await attempt(() => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      const longestMs = waitMs(error, failures);
      onFailed?.(error);
      if (longestMs === undefined) throw error;
      await wait(random() * longestMs, signal).catch(() => {});
    }
  }
}

function delay(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, delayMs);
    signal.addEventListener("abort", stop, { once: true });
  });
}
