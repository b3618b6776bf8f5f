// The range that the kernel takes; 1024 shares are one cpu's worth beside another.
const SHARES_PER_CPU = 1024;
const SHARES_MIN = 2;
const SHARES_MAX = 262_144;

/** Kubernetes' conversion of a cpu request into cgroup v1 shares. */
export function cpuShares(requestMilli: number): number {
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((requestMilli * SHARES_PER_CPU) / 1000)));
}
