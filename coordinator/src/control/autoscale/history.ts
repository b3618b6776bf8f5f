/** What the autoscaler remembers of one workload. In memory: a coordinator that starts anew begins with the present size. */
export interface ScaleHistory {
  /** What was wanted before limits, oldest first and falling: what a later one was as high as is left out. */
  readonly wanted: readonly { readonly atMs: number; readonly replicas: number }[];
  /** Replicas that were added lately. */
  readonly added: readonly { readonly atMs: number; readonly count: number }[];
}

/** Within it replicas may double, or grow by four. Kubernetes' default. */
export const growthPeriodMs = 15_000;

/** As if the present size had just been wanted, so that nothing goes before a whole window has been seen. */
export function newHistory(current: number, nowMs: number): ScaleHistory {
  return { wanted: [{ atMs: nowMs, replicas: current }], added: [] };
}

/** The history with what is wanted now, and without what has had its time. Bounded by looks per window. */
export function withWanted(
  { wanted, added }: ScaleHistory,
  replicas: number,
  windowMs: number,
  nowMs: number,
): ScaleHistory {
  const higher = wanted.filter((it) => it.replicas > replicas && it.atMs > nowMs - windowMs);
  return {
    wanted: [...higher, { atMs: nowMs, replicas }],
    added: added.filter((it) => it.atMs > nowMs - growthPeriodMs),
  };
}

export function withAdded(history: ScaleHistory, count: number, nowMs: number): ScaleHistory {
  return count <= 0 ? history : { ...history, added: [...history.added, { atMs: nowMs, count }] };
}

/** The highest number wanted within the window. */
export function highestWanted({ wanted }: ScaleHistory, windowMs: number, nowMs: number): number {
  const within = wanted.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas);
  return Math.max(0, ...within);
}

/** Replicas at the beginning of the growth period. */
export function periodStart({ added }: ScaleHistory, current: number, nowMs: number): number {
  const lately = added.filter(({ atMs }) => atMs > nowMs - growthPeriodMs);
  return Math.max(0, current - lately.reduce((sum, { count }) => sum + count, 0));
}
