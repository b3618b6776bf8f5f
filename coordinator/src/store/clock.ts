/** The store never reads the wall clock: a step of it must not end a lease. */
export type { MonotonicClock as Clock } from "@forage/common/clock";
