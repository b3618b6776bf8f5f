import type { Clock } from "../clock.ts";
import { failure, failureOf, type ProbeAnswer } from "./probe-answer.ts";

export interface TimeLimit {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An operation that runs within a time limit. */
export interface Attempt {
  /** Lets go of what it holds; called exactly once, however it ends. */
  readonly release: () => void;
  /** Returns the result at the time limit. By default there is none, which is a failure. */
  readonly late?: () => ProbeAnswer | undefined;
}

export const ABORTED: ProbeAnswer = { outcome: "unknown", message: "given up" };

/** Returns the first of these: the operation's result, its result at the time limit, or ABORTED on abort. Never rejects. */
export function within(
  { clock, timeoutMs, signal }: TimeLimit,
  begin: (tell: (answer: ProbeAnswer) => void) => Attempt,
): Promise<ProbeAnswer> {
  if (signal.aborted) return Promise.resolve(ABORTED);
  return new Promise((resolve) => {
    let attempt: Attempt | undefined;
    let told = false;
    const tell = (answer: ProbeAnswer) => {
      if (told) return;
      told = true;
      cancel();
      signal.removeEventListener("abort", abort);
      attempt?.release();
      resolve(answer);
    };
    const abort = () => tell(ABORTED);
    const cancel = clock.schedule(timeoutMs, () =>
      tell(attempt?.late?.() ?? failure(`no answer within ${timeoutMs} ms`)),
    );
    signal.addEventListener("abort", abort, { once: true });
    try {
      attempt = begin(tell);
      if (told) attempt.release();
    } catch (error) {
      // For example a header that can't be sent.
      tell(failureOf(error));
    }
  });
}
