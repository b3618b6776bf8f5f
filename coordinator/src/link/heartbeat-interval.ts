/** The first step whose number of nodes is exceeded counts, so that a fleet sends about 500 heartbeats in a second at most. */
const STEPS = [
  { moreThanNodes: 2_500, intervalMs: 10_000 },
  { moreThanNodes: 1_250, intervalMs: 5_000 },
] as const;

export interface HeartbeatLimits {
  /** The interval of a small fleet, and the shortest one. */
  readonly baseMs: number;
  /** The longest interval, except for `baseMs` itself. Default: there is none. */
  readonly longestMs?: number | undefined;
}

/** Returns the interval between the heartbeats of each node of a fleet, in milliseconds. */
export function heartbeatIntervalMs(nodes: number, { baseMs, longestMs }: HeartbeatLimits): number {
  const step = STEPS.find(({ moreThanNodes }) => nodes > moreThanNodes)?.intervalMs ?? 0;
  return Math.max(baseMs, Math.min(step, longestMs ?? step));
}
