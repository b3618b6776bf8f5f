import { planWorkload as real } from "../../coordinator/src/control/workload/plan.ts";

export * from "../../coordinator/src/control/workload/plan.ts";

/** Counts stopping pods as if they stayed. */
export const planWorkload: typeof real = (input) => {
  const leaving = new Set<string>();
  const pods = input.pods.map((pod) => {
    if (pod.record.stoppingSince === undefined) return pod;
    leaving.add(pod.key);
    return { ...pod, record: { ...pod.record, stoppingSince: undefined } };
  });
  return real({ ...input, pods }).filter((step) => !("pod" in step && leaving.has(step.pod.key)));
};
