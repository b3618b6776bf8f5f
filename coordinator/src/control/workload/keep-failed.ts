import { KEPT_PODS_MAX } from "../../model/kept-pod.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

/**
 * Marks those stops of failed pods whose status and logs are kept: pods of the revision that is rolled back, at most
 * KEPT_PODS_MAX of a rollout attempt, pods with ended containers first. Pure.
 */
export function keepFailedPods(steps: readonly WorkloadStep[], input: WorkloadInput): WorkloadStep[] {
  const { resource, status, keptPods = 0 } = input;
  const attempt = status?.attempt;
  const hashes = resource?.applied?.currentHashes;
  if (attempt === undefined || attempt.rolledBackTo === 0 || hashes === undefined) return [...steps];
  // The logs of a deleted workload are deleted with it.
  if (resource?.record.deleting) return [...steps];
  const stops = steps.flatMap((step) => (step.type === "stop-pod" ? [step.pod] : []));
  const failed = stops.filter((pod) => hashes.has(pod.record.templateHash) && hasFailed(pod));
  const chosen = new Set(failed.sort(byUse).slice(0, Math.max(0, KEPT_PODS_MAX - keptPods)));
  if (chosen.size === 0) return [...steps];
  return steps.map((step) =>
    step.type === "stop-pod" && chosen.has(step.pod)
      ? { ...step, keep: { attemptStartedAt: attempt.startedAt } }
      : step,
  );
}

/** Reports whether a node has started the pod, and the pod isn't ready. */
function hasFailed({ record, status }: PodEntry): boolean {
  return record.node !== "" && status !== undefined && !status.ready;
}

/** Compares pods so that those with the most ended runs come first, then the newest. */
function byUse(a: PodEntry, b: PodEntry): number {
  return endsOf(b) - endsOf(a) || createdMs(b) - createdMs(a);
}

function endsOf({ status }: PodEntry): number {
  const containers = status?.containers ?? [];
  return containers.reduce((sum, it) => sum + it.restartCount + (it.lastTermination ? 1 : 0), 0);
}

function createdMs({ record }: PodEntry): number {
  return toEpochMs(record.createdAt) ?? 0;
}
