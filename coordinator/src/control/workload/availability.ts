import { isReady } from "../../endpoints/readiness.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** The minimum ready time of a pod with restarted containers. By then the container's first retry would have been due. */
const STABLE_AFTER_CRASH_MS = 10_000;

/** Translates a recorded time, as `Moment.since` does. */
export type TranslateTime = (atMs: number) => number;

/**
 * Returns the time at which a ready pod counts as available. The delay excludes pods that crash at once. A pod whose ready
 * time is in the future was ready before the clock was set back, and counts as available already.
 */
export function availableAtMs(
  pod: PodEntry,
  stableMs: number,
  { nowMs, since }: Pick<AvailabilityInput, "nowMs" | "since">,
): number {
  const recordedMs = pod.readySinceMs ?? pod.observedAtMs ?? 0;
  const sinceMs = since === undefined ? recordedMs : since(recordedMs);
  if (sinceMs > nowMs) return nowMs;
  const crashed = pod.status?.containers.some((container) => container.restartCount > 0) ?? false;
  return sinceMs + (crashed ? Math.max(STABLE_AFTER_CRASH_MS, stableMs) : stableMs);
}

export interface AvailabilityInput {
  readonly nodeReady: (name: string) => boolean;
  readonly nowMs: number;
  /** Translates recorded times. Default: all time counts. */
  readonly since?: TranslateTime | undefined;
}

/** Reports whether the pod is ready on a reachable node, and has been for long enough. */
export function isAvailable(pod: PodEntry, stableMs: number, input: AvailabilityInput): boolean {
  return isReady(pod, input.nodeReady) && availableAtMs(pod, stableMs, input) <= input.nowMs;
}

/** Returns the milliseconds for which a pod has to be ready to be available. */
export function stableMsOf(
  { settings }: Pick<Workload, "settings">,
  { limits }: { readonly limits: ProgressLimits },
): number {
  return settings.minReadyMs ?? limits.stableMs;
}

/**
 * Returns the number of available pods of the workload's revision. Negative while Recreate still stops older pods: the
 * number of those, negated.
 */
export function reached(
  workload: Workload,
  pods: readonly PodEntry[],
  input: AvailabilityInput & { readonly limits: ProgressLimits },
): number {
  const stableMs = stableMsOf(workload, input);
  let current = 0;
  let available = 0;
  for (const pod of pods) {
    if (!workload.currentHashes.has(pod.record.templateHash)) continue;
    current++;
    if (isAvailable(pod, stableMs, input)) available++;
  }
  if (workload.strategy?.type !== "Recreate" || available > 0) return available;
  // 0 minus the length avoids a result of -0.
  return current - pods.length;
}
