import type { Clock } from "../clock.ts";
import { failure, failureOf, type ProbeAnswer } from "./probe-answer.ts";

export interface TimeLimit {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An operation that runs within a time limit. */
export interface Attempt {
  /** Releases resources. Called exactly once, whatever the result. */
  readonly release: () => void;
  /** Returns the result at the time limit. By default there is none, which is a failure. */
  readonly late?: () => ProbeAnswer | undefined;
}

export const ABORTED: ProbeAnswer = { outcome: "unknown", message: "given up" };

/**
 * Returns the first of these: the operation's result, its result at the time limit, or `unknown` on abort. Never
 * rejects.
 */
export function within(
  { clock, timeoutMs, signal }: TimeLimit,
  begin: (settle: (answer: ProbeAnswer) => void) => Attempt,
): Promise<ProbeAnswer> {
  if (signal.aborted) return Promise.resolve(ABORTED);
  return new Promise((resolve) => {
    let attempt: Attempt | undefined;
    let settled = false;
    const settle = (answer: ProbeAnswer) => {
      if (settled) return;
      settled = true;
      cancel();
      signal.removeEventListener("abort", abort);
      attempt?.release();
      resolve(answer);
    };
    const abort = () => settle(ABORTED);
    const cancel = clock.schedule(timeoutMs, () =>
      settle(attempt?.late?.() ?? failure(`no answer within ${timeoutMs} ms`)),
    );
    signal.addEventListener("abort", abort, { once: true });
    try {
      attempt = begin(settle);
      if (settled) attempt.release();
    } catch (error) {
      // For example, a header can't be sent.
      settle(failureOf(error));
    }
  });
}
