/**
 * The intervals by number of nodes. The first entry whose number is exceeded applies, so that a fleet sends at most about
 * 500 heartbeats per second.
 */
const STEPS = [
  { moreThanNodes: 2_500, intervalMs: 10_000 },
  { moreThanNodes: 1_250, intervalMs: 5_000 },
] as const;

export interface HeartbeatLimits {
  /** The interval of a small fleet, which is the shortest one. */
  readonly baseMs: number;
  /** The longest interval, unless `baseMs` is longer. Default: no limit. */
  readonly longestMs?: number | undefined;
}

/** Returns the interval between the heartbeats of each node of a fleet, in milliseconds. */
export function heartbeatIntervalMs(nodes: number, { baseMs, longestMs }: HeartbeatLimits): number {
  const step = STEPS.find(({ moreThanNodes }) => nodes > moreThanNodes)?.intervalMs ?? 0;
  return Math.max(baseMs, Math.min(step, longestMs ?? step));
}

/** The distance between the times at which heartbeats are to arrive. */
const SLOT_MS = 500;
/** The time after a slot within which a heartbeat is not moved to the next one. */
const LATE_MS = 20;
/** The shortest interval of heartbeats that are moved. Shorter ones are those of small fleets, whose grace period is short, too. */
const SHORTEST_MOVED_MS = 5_000;

/**
 * Returns the time from a heartbeat that arrives at `monotonicMs` to the node's next one, in milliseconds. It is the
 * interval, or slightly longer in a large fleet, so that the heartbeats of many nodes arrive together: a process that is woken for each one
 * alone has lost its code and data from the processor's caches by then. 0: the agent keeps its own time.
 */
export function nextHeartbeatMs(monotonicMs: number, intervalMs: number): number {
  if (intervalMs < SHORTEST_MOVED_MS) return 0;
  const atMs = Math.ceil((monotonicMs + intervalMs - LATE_MS) / SLOT_MS) * SLOT_MS;
  return Math.max(intervalMs, Math.round(atMs - monotonicMs));
}
