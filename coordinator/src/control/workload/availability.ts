import { isReady } from "../../endpoints/readiness.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** A container that has crashed before proves itself for longer: the time after which its first retry is due. */
const STABLE_AFTER_CRASH_MS = 10_000;

/** Translates a time on record, as `Moment.since` does. */
export type Since = (atMs: number) => number;

/**
 * Returns the time at which a ready pod counts as available; the delay excludes pods that crash at once. A pod that is ready
 * since a future time was ready before the clock was set back, and is available already.
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
  /** Default: all time counts. */
  readonly since?: Since | undefined;
}

/** Reports whether the pod serves and has done so for long enough. */
export function isAvailable(pod: PodEntry, stableMs: number, input: AvailabilityInput): boolean {
  return isReady(pod, input.nodeReady) && availableAtMs(pod, stableMs, input) <= input.nowMs;
}

/** Returns the time for which a pod has to be ready. */
export function stableMsOf(
  { settings }: Pick<Workload, "settings">,
  { limits }: { readonly limits: ProgressLimits },
): number {
  return settings.minReadyMs ?? limits.stableMs;
}

/**
 * Returns the progress of pods to the workload's revision: the number of available ones. Negative while Recreate still stops
 * others.
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
  // Subtracted from 0, it would be -0 for none.
  return current - pods.length;
}
