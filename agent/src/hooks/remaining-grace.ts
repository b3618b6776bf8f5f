/**
 * The shortest time that a container gets to stop, as in Kubernetes. Otherwise a slow pre_stop hook would leave it SIGKILL only.
 */
export const GRACE_LEAST_MS = 2_000;

/**
 * How long the container has between stop signal and SIGKILL: the grace period counts from the start of its pre_stop hook.
 * Times are one clock's; one that was set back in between takes nothing away.
 */
export function remainingGraceMs(graceMs: number, stoppingSinceMs: number, nowMs: number): number {
  const usedMs = Math.max(0, nowMs - stoppingSinceMs);
  return Math.max(GRACE_LEAST_MS, graceMs - usedMs);
}
