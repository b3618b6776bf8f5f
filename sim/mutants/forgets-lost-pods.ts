import { planWorkload as real } from "../../coordinator/src/control/workload/plan.ts";
import type { WorkloadStep } from "../../coordinator/src/control/workload/workload-step.ts";

export * from "../../coordinator/src/control/workload/plan.ts";

/** Treats pods on unreachable nodes as deleted. */
export const planWorkload: typeof real = (input) => {
  const lost = input.pods.filter(({ record }) => record.node !== "" && !input.nodeReady(record.node));
  const pods = input.pods.filter((pod) => !lost.includes(pod));
  const forgotten = lost.map((pod): WorkloadStep => ({ type: "forget-pod", pod, why: "its node is lost" }));
  return [...forgotten, ...real({ ...input, pods })];
};
