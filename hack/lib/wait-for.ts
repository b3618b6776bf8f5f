import { setTimeout as delay } from "node:timers/promises";
import { SetupError } from "./setup-error.ts";

export interface WaitOptions {
  /** The condition, for the error at the time-out: "containerd answers". */
  readonly what: string;
  readonly limitMs: number;
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
  /** Added to the error when the time is up, such as the end of a log. */
  readonly explain?: () => string;
}

/** Asks until the answer is neither undefined nor false, and returns it; throws NOT_READY when the limit is reached. */
export async function waitFor<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions,
): Promise<T> {
  const end = performance.now() + options.limitMs;
  for (;;) {
    options.signal?.throwIfAborted();
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) break;
    await delay(options.everyMs ?? 25, undefined, { signal: options.signal });
  }
  const detail = options.explain?.() ?? "";
  throw new SetupError(
    "NOT_READY",
    `waited ${options.limitMs} ms in vain until ${options.what}${detail && `\n${detail}`}`,
    "see the log named above, then try again",
  );
}
