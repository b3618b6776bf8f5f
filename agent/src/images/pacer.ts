import { type Clock, pause } from "../clock.ts";

/**
 * The amount that may be sent in advance, in time at the given rate. Otherwise timers would slow transfers of small
 * pieces.
 */
const BURST_MS = 250;

/** Returns a function that resolves once this many more bytes may be sent. All callers share the rate. */
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
