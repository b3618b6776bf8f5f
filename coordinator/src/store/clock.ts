/** The clock of the store. It is monotonic only, so that a step of the wall clock never ends a lease. */
export type { MonotonicClock as Clock } from "@forage/common/clock";
