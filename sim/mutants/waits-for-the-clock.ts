import type { nextPodMs as real } from "../../coordinator/src/control/job/back-off.ts";
import { toEpochMs } from "../../coordinator/src/model/timestamp.ts";

/** Delays a job whose last failure is in the future, because the clock was set back, until the clock has caught up. */
export const nextPodMs: typeof real = ({ failuresInARow, lastFailure }, nowMs) => {
  const failedMs = toEpochMs(lastFailure?.at);
  if (failuresInARow === 0 || failedMs === undefined) return nowMs;
  return Math.min(failedMs, nowMs) + 10_000;
};
