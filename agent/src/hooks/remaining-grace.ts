/**
 * The shortest time that a container gets to stop, as in Kubernetes. Otherwise a slow pre_stop hook would leave it no
 * time before SIGKILL.
 */
export const GRACE_LEAST_MS = 2_000;

/**
 * Returns the time between stop signal and SIGKILL. The grace period counts from the start of the container's pre_stop
 * hook. All times are of the same clock; setting it back does not shorten the result.
 */
export function remainingGraceMs(graceMs: number, stoppingSinceMs: number, nowMs: number): number {
  const usedMs = Math.max(0, nowMs - stoppingSinceMs);
  return Math.max(GRACE_LEAST_MS, graceMs - usedMs);
}
