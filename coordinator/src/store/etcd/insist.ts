import { backOffMs } from "@forage/common/back-off";
import { type MonotonicClock, pause } from "@forage/common/clock";
import { EtcdError } from "./etcd-error.ts";
import type { Outage } from "./outage.ts";

/** A member that restarts, or an election, takes about a second. */
const BACK_OFF = { baseMs: 50, capMs: 1_000 };

export interface Insistence {
  readonly clock: MonotonicClock;
  /** A number from 0 up to, but not including, 1. */
  readonly random: () => number;
  readonly outage: Outage;
  readonly signal: AbortSignal;
  /** The longest outage to wait out. Default: no limit. */
  readonly outageMaxMs?: number;
  /** Called after each failure that is followed by another try. */
  readonly onRetry?: () => void;
}

/**
 * Repeats a call until etcd answers it. A call that failed may have taken effect, so the call must bear being repeated.
 * @throws EtcdError when the call can't succeed, or the signal aborts.
 */
export async function insist<T>(
  call: () => Promise<T>,
  { clock, random, outage, signal, onRetry, outageMaxMs = Number.POSITIVE_INFINITY }: Insistence,
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
