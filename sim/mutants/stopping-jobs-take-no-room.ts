import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { usesNothing as real } from "../../coordinator/src/control/job/pod-state.ts";

export * from "../../coordinator/src/control/job/pod-state.ts";

/** Counts no resources for a job's pod that is being stopped, although its containers still run. */
export const usesNothing: typeof real = (pod) =>
  (pod.record.job !== undefined && pod.status?.phase === PodPhase.STOPPING) || real(pod);
