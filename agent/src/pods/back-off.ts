export interface BackOffLimits {
  readonly baseMs: number;
  readonly capMs: number;
}

// Kubernetes' figures: 10 s doubling to 5 min.
export const RESTART_BACK_OFF: BackOffLimits = { baseMs: 10_000, capMs: 300_000 };
// A registry is often back within seconds.
export const IMAGE_BACK_OFF: BackOffLimits = { baseMs: 5_000, capMs: 300_000 };
// For calls to the runtime and the network that failed through no fault of the pod.
export const FAULT_BACK_OFF: BackOffLimits = { baseMs: 500, capMs: 30_000 };

/** The wait after the n-th failure in a row (n from 1): base, doubled each time, never above the cap. */
export function backOffMs(failures: number, limits: BackOffLimits): number {
  // 2^31 times any base is far above every cap; more would only overflow.
  return Math.min(limits.capMs, limits.baseMs * 2 ** Math.min(31, Math.max(0, failures - 1)));
}
