import { backOffMs } from "@forage/common/back-off";
import { type MonotonicClock, pause } from "@forage/common/clock";
import { EtcdError } from "./etcd-error.ts";
import type { Outage } from "./outage.ts";

/** The delay between attempts. A restart of a member or an election takes about a second. */
const BACK_OFF = { baseMs: 50, capMs: 1_000 };

export interface RetryTiming {
  readonly clock: MonotonicClock;
  /** Returns a random number from 0 to 1, exclusive. */
  readonly random: () => number;
  readonly outage: Outage;
  readonly signal: AbortSignal;
  /** The longest outage, in milliseconds, during which calls are repeated. Default: no limit. */
  readonly outageMaxMs?: number;
  /** Called after each failed attempt that is repeated. */
  readonly onRetry?: () => void;
}

/**
 * Repeats a call until etcd responds. An attempt that failed may have taken effect, so the call must be idempotent. @throws
 * EtcdError if the call can't succeed, or the signal aborts.
 */
export async function retryUntilAnswered<T>(
  call: () => Promise<T>,
  { clock, random, outage, signal, onRetry, outageMaxMs = Number.POSITIVE_INFINITY }: RetryTiming,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      const result = await call();
      outage.answered();
      return result;
    } catch (error) {
      if (!(error instanceof EtcdError && error.retryable) || signal.aborted) throw error;
      outage.unanswered(error);
      if (outage.lastedMs >= outageMaxMs) throw error;
      onRetry?.();
      await pause(clock, backOffMs(failures, BACK_OFF) * (0.5 + random() / 2), signal);
    }
  }
}
