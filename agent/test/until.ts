import { setTimeout as sleep } from "node:timers/promises";

const LIMIT_MS = 90_000;
const EVERY_MS = 20;

/** Waits for a condition; the limit is for tests that fail, not for machines that are slow. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(EVERY_MS);
  }
}
