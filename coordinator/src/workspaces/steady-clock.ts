import type { Clock } from "../time/clock.ts";

/**
 * Returns the wall clock's time as it was at the start, advanced by the monotonic clock. A wall clock that is set while the
 * coordinator runs ends no workspace.
 */
export function steadyTime(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs();
  return () => offsetMs + clock.monotonicMs();
}
