// The range that the kernel accepts. One cpu corresponds to 1024 shares.
const SHARES_PER_CPU = 1024;
const SHARES_MIN = 2;
const SHARES_MAX = 262_144;

/** Converts a cpu request into cgroup v1 shares as Kubernetes does. */
export function cpuShares(requestMilli: number): number {
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((requestMilli * SHARES_PER_CPU) / 1000)));
}
