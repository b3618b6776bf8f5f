import { setTimeout as sleep } from "node:timers/promises";
import { restAfter } from "../../hack/lib/wait-for.ts";

const LIMIT_MS = 90_000;
const EVERY_MS = 20;

/** Waits for a condition. The limit is meant for failing tests, not for slow machines. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
): Promise<void> {
  const sinceMs = performance.now();
  for (;;) {
    const startMs = performance.now();
    if (await holds()) return;
    const endMs = performance.now();
    if (endMs - sinceMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(restAfter(endMs - startMs, endMs - sinceMs, EVERY_MS));
  }
}
