import { setTimeout as sleep } from "node:timers/promises";

const LIMIT_MS = 90_000;
const EVERY_MS = 20;
/**
 * The rest time per check, as a multiple of its duration. Checks that start programs must leave processor time to the
 * tested system.
 */
const REST_PER_CHECK = 2;

/** Waits for a condition. The limit is meant for failing tests, not for slow machines. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const startMs = performance.now();
    if (await holds()) return;
    const endMs = performance.now();
    if (endMs > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(Math.max(EVERY_MS, REST_PER_CHECK * (endMs - startMs)));
  }
}
