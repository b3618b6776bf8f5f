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

/**
 * Calls the check until its result is neither undefined nor false, and returns the result. Throws NOT_READY at the time
 * limit.
 */
export async function waitFor<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions,
): Promise<T> {
  const end = performance.now() + options.limitMs;
  for (;;) {
    options.signal?.throwIfAborted();
    const startMs = performance.now();
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const answeredMs = performance.now();
    if (answeredMs > end) break;
    const restMs = Math.max(options.everyMs ?? EVERY_MS, REST_PER_CHECK * (answeredMs - startMs));
    await delay(restMs, undefined, { signal: options.signal });
  }
  const detail = options.explain?.() ?? "";
  throw new SetupError(
    "NOT_READY",
    `waited ${options.limitMs} ms in vain until ${options.what}${detail && `\n${detail}`}`,
    "see the log named above, then try again",
  );
}
