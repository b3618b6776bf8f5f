import type { BackOff } from "@forage/common/back-off";
/** Limits of the event log. */
export interface EventLimits {
  /** Events kept; the oldest go first. */
  readonly maxCount: number;
  /** The total size of their records. */
  readonly maxBytes: number;
}

export const defaultEventLimits: EventLimits = { maxCount: 10_000, maxBytes: 8 * 1024 * 1024 };

/** The same event again within this time of its last counts up. Long enough for the longest back-offs of agents. */
export const coalesceMs = 10 * 60 * 1000;
/** Events that can count up; more different ones in that time are not what counting is for. */
export const maxCoalesced = 2_000;

/**
 * An object may record so many events at once, and then one more in each interval. A restart of a pod with ten containers fits.
 */
export const burstPerObject = 25;
export const refillMs = 5_000;
/** Objects whose rate is known; the one longest silent is forgotten, and has its burst again. */
export const maxRated = 10_000;

/** The longest delay before events are written, and so what a crash can lose. */
export const flushMs = 200;
/** Each event is up to two operations of a transaction's 128. */
export const maxPerWrite = 60;
/** The number of events that may wait for the store: a minute's worth in a large fleet. Any more are dropped and counted. */
export const maxWaiting = 2_000;
/** Pauses after a write that failed; they double. */
export const RETRY: BackOff = { baseMs: 500, capMs: 30_000 };

/** Messages hold last lines of output; more is in the logs. */
export const maxMessageLength = 2_000;

/** Each reads all that is written: more of them would cost more than the fleet. */
export const maxWatchers = 200;
