import { isReady } from "../../endpoints/readiness.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import { type AvailabilityInput, isAvailable } from "./availability.ts";
import { budgetOf } from "./budget.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

/**
 * Returns the steps of a workload's plan with the stops of marked pods that can be spared now added. The plan creates
 * replacements of marked pods but doesn't stop them; deciding both in one evaluation keeps them from using the same
 * unavailable replica twice. Pure.
 */
export function addDrainStops(steps: readonly WorkloadStep[], input: WorkloadInput): WorkloadStep[] {
  const { resource, pods, limits } = input;
  const active = pods.filter(({ record }) => record.stoppingSince === undefined);
  if (resource?.workload === undefined || !active.some(isDraining)) return [...steps];
  const going = new Set(
    steps.flatMap((step) => (step.type === "stop-pod" || step.type === "forget-pod" ? [step.pod] : [])),
  );
  const left = active.filter((pod) => !going.has(pod));
  const stableMs = resource.workload.settings.minReadyMs ?? limits.stableMs;
  const retired = stopDrainingPods(resource.workload, left, { ...input, stableMs });
  return [...steps, ...retired.map((pod): WorkloadStep => ({ type: "stop-pod", pod, why: causeOf(pod) }))];
}

/**
 * Returns the stops of marked pods. `pods` are the pods that are not stopping. Unready pods may always stop, ready pods as
 * far as enough others stay available. Pure.
 */
export function stopDrainingPods(
  workload: Workload,
  pods: readonly PodEntry[],
  input: AvailabilityInput & { readonly stableMs: number },
): PodEntry[] {
  const { needed } = budgetOf(workload);
  const counts = (pod: PodEntry): boolean => isAvailable(pod, input.stableMs, input);
  let spare = pods.filter(counts).length - needed;
  return pods.filter((pod) => {
    if (!isDraining(pod)) return false;
    if (!isReady(pod, input.nodeReady)) return true;
    if (!counts(pod) || spare <= 0) return false;
    spare -= 1;
    return true;
  });
}

export function isDraining({ record }: PodEntry): boolean {
  return record.drainingSince !== undefined && record.stoppingSince === undefined;
}

function causeOf({ record: { drainCause, node } }: PodEntry): string {
  return drainCause === "rebalance" ? "it is moved to a better node" : `its node ${node} is drained`;
}
