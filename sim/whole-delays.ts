import type { Clock } from "@forage/common/clock";

/**
 * Returns a clock that rounds delays up to whole milliseconds. A timer that fired a fraction early would make its owner
 * wait again in the same moment, for ever.
 */
export function wholeDelays(clock: Clock): Clock {
  return { ...clock, schedule: (delayMs, run) => clock.schedule(Math.ceil(delayMs), run) };
}
