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
