import type { BackOff } from "@forage/common/back-off";

/** Limits of the event log. */
export interface EventLimits {
  /** The number of events kept. The oldest are removed first. */
  readonly maxCount: number;
  /** The total size of their records. */
  readonly maxBytes: number;
}

export const DEFAULT_EVENT_LIMITS: EventLimits = { maxCount: 10_000, maxBytes: 8 * 1024 * 1024 };

/** The same event again within this time of its last counts up. Long enough for the longest back-offs of agents. */
export const COALESCE_MS = 10 * 60 * 1000;
/** The number of different events that can be counted up at one time. */
export const MAX_COALESCED = 2_000;

/**
 * An object may record so many events at once, and then one more in each interval. A restart of a pod with ten containers fits.
 */
export const BURST_PER_OBJECT = 25;
export const REFILL_MS = 5_000;
/** Objects whose rate is known; the one longest silent is forgotten, and has its burst again. */
export const MAX_RATED = 10_000;

/** The longest delay before events are written, and so what a crash can lose. */
export const FLUSH_MS = 200;
/** The number of events in one write. Each is up to two operations of a transaction's 128. */
export const MAX_PER_WRITE = 60;
/** The number of events that may wait for the store: a minute's worth in a large fleet. Any more are dropped and counted. */
export const MAX_WAITING = 2_000;
/** Pauses after a write that failed; they double. */
export const RETRY: BackOff = { baseMs: 500, capMs: 30_000 };

/** Messages hold last lines of output; more is in the logs. */
export const MAX_MESSAGE_LENGTH = 2_000;

/** The limit of watchers: about 20 kB each. One client may have half of them, by the limit of its open calls. */
export const MAX_WATCHERS = 20_000;
/** The number of watchers that get new events at once. */
export const WATCHERS_AT_ONCE = 500;
/** The time until the next ones do. 2,500 watchers a second, at 0.1 ms each, take a quarter of a core, however many there are. */
export const WATCHERS_PAUSE_MS = 200;
