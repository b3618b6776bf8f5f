import { type BackOff, backOffMs } from "@forage/common/back-off";
import { type Clock, pause } from "../clock.ts";

export interface RetryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called after each try with its error, or with undefined after the one that succeeded. */
  readonly outcome: (error: unknown) => void;
}

const BACK_OFF: BackOff = { baseMs: 500, capMs: 10_000 };

/** Repeats the work until it succeeds or the signal aborts. */
export async function retryUntilDone(
  work: (signal: AbortSignal) => Promise<void>,
  { clock, signal, outcome }: RetryOptions,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      await work(signal);
      outcome(undefined);
      return;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      outcome(error);
      await pause(clock, backOffMs(failures, BACK_OFF), signal);
    }
  }
}
