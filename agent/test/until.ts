import { setTimeout as sleep } from "node:timers/promises";

const LIMIT_MS = 90_000;
const EVERY_MS = 20;
/** A check that starts programs must not keep a processor busy, which the system under test needs. */
const REST_PER_CHECK = 2;

/** Waits for a condition; the limit is for tests that fail, not for machines that are slow. */
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
