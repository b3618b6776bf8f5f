/**
 * The autoscaler's history of one workload. It is in memory only: after a restart it begins with the current number of
 * replicas.
 */
export interface ScaleHistory {
  /**
   * The recommendations before limits, oldest first, strictly decreasing: a recommendation is dropped once a later one is
   * at least as high.
   */
  readonly recommended: readonly { readonly atMs: number; readonly replicas: number }[];
  /** The replicas that were added within the growth period. */
  readonly added: readonly { readonly atMs: number; readonly count: number }[];
}

/** The period within which replicas may double or grow by four. Kubernetes' default. */
export const GROWTH_PERIOD_MS = 15_000;

/**
 * Returns a history that begins with the current number of replicas, so that no pod is removed before a whole window has
 * passed.
 */
export function newHistory(current: number, nowMs: number): ScaleHistory {
  return { recommended: [{ atMs: nowMs, replicas: current }], added: [] };
}

/**
 * Returns the history with the new recommendation and without expired ones. Its length is limited by the number of
 * evaluations in a window.
 */
export function withRecommendation(
  { recommended, added }: ScaleHistory,
  replicas: number,
  windowMs: number,
  nowMs: number,
): ScaleHistory {
  const higher = recommended.filter((it) => it.replicas > replicas && it.atMs > nowMs - windowMs);
  return {
    recommended: [...higher, { atMs: nowMs, replicas }],
    added: added.filter((it) => it.atMs > nowMs - GROWTH_PERIOD_MS),
  };
}

export function withAdded(history: ScaleHistory, count: number, nowMs: number): ScaleHistory {
  return count <= 0 ? history : { ...history, added: [...history.added, { atMs: nowMs, count }] };
}

/** Returns the highest recommendation within the window. */
export function highestRecommendation(
  { recommended }: ScaleHistory,
  windowMs: number,
  nowMs: number,
): number {
  const within = recommended.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas);
  return Math.max(0, ...within);
}

/** Returns the number of replicas at the beginning of the growth period. */
export function periodStart({ added }: ScaleHistory, current: number, nowMs: number): number {
  const lately = added.filter(({ atMs }) => atMs > nowMs - GROWTH_PERIOD_MS);
  return Math.max(0, current - lately.reduce((sum, { count }) => sum + count, 0));
}
