import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../../model/timestamp.ts";

/** Kubernetes' figures: 10 s, doubling to 6 minutes. */
const baseMs = 10_000;
const capMs = 360_000;

/** When the next pod may be made: later each time, after pods that failed one after the other. */
export function nextPodMs({ failuresInARow, lastFailure }: JobStatus, nowMs: number): number {
  const failedMs = toEpochMs(lastFailure?.at);
  if (failuresInARow === 0 || failedMs === undefined) return nowMs;
  const delayMs = Math.min(capMs, baseMs * 2 ** Math.min(20, failuresInARow - 1));
  // The clock was set back since. Waiting until it has caught up could take days, so the next pod is made at once.
  if (failedMs > nowMs + delayMs) return nowMs;
  return failedMs + delayMs;
}
