import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../../model/timestamp.ts";
import type { TranslateTime } from "../workload/availability.ts";

/** Kubernetes' delays for pods of jobs: 10 s, doubling to 6 minutes. */
const POD_BACK_OFF: BackOff = { baseMs: 10_000, capMs: 360_000 };

/** Returns the time at which the next pod may start. Each consecutive failure increases the delay. */
export function nextPodMs(
  { failuresInARow, lastFailure }: JobStatus,
  nowMs: number,
  since?: TranslateTime,
): number {
  const recordedMs = toEpochMs(lastFailure?.at);
  if (failuresInARow === 0 || recordedMs === undefined) return nowMs;
  const failedMs = since === undefined ? recordedMs : since(recordedMs);
  const delayMs = backOffMs(failuresInARow, POD_BACK_OFF);
  // The clock was set back after the failure. Waiting for it to catch up could take days, so the next pod is created at
  // once.
  if (failedMs > nowMs + delayMs) return nowMs;
  return failedMs + delayMs;
}
