import type { BackOff } from "@forage/common/back-off";

/** Limits of the event log. */
export interface EventLimits {
  /** The most stored events. The oldest are removed first. */
  readonly maxCount: number;
  /** The limit of the total size of stored events. */
  readonly maxBytes: number;
}

export const DEFAULT_EVENT_LIMITS: EventLimits = { maxCount: 10_000, maxBytes: 8 * 1024 * 1024 };

/**
 * The time within which a repeated event increases the count of the former one, as long as the
 * longest back-off of agents.
 */
export const COALESCE_MS = 10 * 60 * 1000;
/**
 * The most events whose repetitions are counted at a time. It may be exceeded by `ADDED_BETWEEN_SEARCHES`, because the
 * oldest ones are only dropped in a search.
 */
export const MAX_COALESCED = 2_000;

/**
 * The number of events that an object may record at once, before it is limited to one in each
 * interval. A restart of a pod with ten containers needs fewer.
 */
export const BURST_PER_OBJECT = 25;
export const REFILL_MS = 5_000;
/**
 * The most objects whose rate is tracked. The least recently active one is dropped, and may then
 * record a burst again. It may be exceeded by `ADDED_BETWEEN_SEARCHES`.
 */
export const MAX_RATED = 10_000;
/**
 * The number of additions between two searches for entries that are no longer needed. Each search
 * begins at the oldest entry, and passes the places of all that were deleted since the map was last
 * rebuilt, which takes up to 9 µs.
 */
export const ADDED_BETWEEN_SEARCHES = 64;

/** The longest delay before events are written, and therefore the most that a crash can lose. */
export const FLUSH_MS = 200;
/** The most events in one write. Each needs up to two of the 128 operations of a transaction. */
export const MAX_PER_WRITE = 60;
/**
 * The most events that wait for the store: those of a minute in a large fleet. Further ones are
 * dropped and counted.
 */
export const MAX_WAITING = 2_000;
/** The delays after failed writes. */
export const RETRY: BackOff = { baseMs: 500, capMs: 30_000 };

/** The length limit of messages, which contain the last lines of output. Logs contain more. */
export const MAX_MESSAGE_LENGTH = 2_000;

/**
 * The most watchers, about 20 kB each. The limit of open calls keeps one client from using more
 * than half of them.
 */
export const MAX_WATCHERS = 20_000;
/** The number of watchers that are notified at a time. */
export const WATCHERS_AT_ONCE = 500;
/**
 * The pause between two groups of watchers. 2,500 watchers a second, at 0.1 ms each, use a quarter
 * of a core, regardless of their number.
 */
export const WATCHERS_PAUSE_MS = 200;
