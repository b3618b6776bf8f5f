import { setTimeout as delay } from "node:timers/promises";
import { SetupError } from "./setup-error.ts";

export interface WaitOptions {
  /** The expected condition, for the error after the time limit: "containerd answers". */
  readonly what: string;
  readonly limitMs: number;
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
  /** Returns text that is added to the error, such as the end of a log. */
  readonly explain?: () => string;
}

const EVERY_MS = 25;
/**
 * The ratio of rest to checking time. Checks that start programs must not use up the processors that the system under
 * test needs, also when several files wait at the same time.
 */
const REST_PER_CHECK = 4;
/** The same ratio in long waits. The rest is then also limited to a part of the time waited, and to `LATER_REST_MAX_MS`. */
const LATER_REST_PER_CHECK = 30;
const REST_PER_WAIT = 1 / 8;
const LATER_REST_MAX_MS = 250;

/**
 * Calls the check until its result is neither undefined nor false, and returns the result. Throws NOT_READY at the time
 * limit.
 */
export async function waitFor<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions,
): Promise<T> {
  const sinceMs = performance.now();
  for (;;) {
    options.signal?.throwIfAborted();
    const startMs = performance.now();
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const answeredMs = performance.now();
    const waitedMs = answeredMs - sinceMs;
    if (waitedMs > options.limitMs) break;
    const restMs = restAfter(answeredMs - startMs, waitedMs, options.everyMs ?? EVERY_MS);
    await delay(restMs, undefined, { signal: options.signal });
  }
  const detail = options.explain?.() ?? "";
  throw new SetupError(
    "NOT_READY",
    `waited ${options.limitMs} ms in vain until ${options.what}${detail && `\n${detail}`}`,
    "see the log named above, then try again",
  );
}

/**
 * Returns the time until the next check, in milliseconds. The last check took `checkMs`, and the wait has taken
 * `waitedMs` so far. The result is at least `everyMs`.
 */
export function restAfter(checkMs: number, waitedMs: number, everyMs: number): number {
  const later = Math.min(LATER_REST_PER_CHECK * checkMs, REST_PER_WAIT * waitedMs, LATER_REST_MAX_MS);
  return Math.max(everyMs, REST_PER_CHECK * checkMs, later);
}
