import type { Clock } from "@forage/common/clock";

/** Returns the clock with the wall clock's time in place of the monotonic time. */
export function onWallClock(clock: Clock): Clock {
  return { ...clock, monotonicMs: clock.nowMs };
}
