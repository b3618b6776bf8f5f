import { type Clock, pause } from "../clock.ts";

/** Bytes may be sent ahead for so long, so that a transfer of small pieces isn't slowed by timers. */
const BURST_MS = 250;

/** Returns a function that resolves once so many further bytes may be sent. All callers share the rate. */
export function pacer(
  bytesPerSecond: number,
  clock: Clock,
): (bytes: number, signal: AbortSignal) => Promise<void> {
  let freeAtMs = Number.NEGATIVE_INFINITY;
  return async (bytes, signal) => {
    const nowMs = clock.monotonicMs();
    freeAtMs = Math.max(freeAtMs, nowMs) + (1_000 * bytes) / bytesPerSecond;
    const waitMs = freeAtMs - nowMs - BURST_MS;
    if (waitMs > 0) await pause(clock, waitMs, signal);
  };
}
