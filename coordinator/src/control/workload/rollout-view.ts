import type { RolloutAttempt } from "@forage/proto/forage/store/v1/store";
import type { PodEntry } from "../../state/entries.ts";
import { currentPods } from "./current-pods.ts";
import { waitsForPromotion } from "./evaluate-rollout.ts";
import type { Hold } from "./hold.ts";
import { describePrefetch, prefetchStatus } from "./prefetch-status.ts";
import { rolloutStateOf } from "./rollout-state.ts";
import type { WorkloadInput } from "./workload-input.ts";

/** The state of a container service's rollout attempt, for reports. */
export interface RolloutView {
  /** Undefined until the first attempt begins. */
  readonly attempt: RolloutAttempt | undefined;
  readonly hold: Hold;
  /** A canary has all its pods. */
  readonly waitsForPromotion: boolean;
  /** The reason why older pods have to stay for now. Empty without one. */
  readonly prefetchStatus: string;
  /** The revision that a rollback would return to. 0 if there is none. */
  readonly goodRevision: number;
}

/** Undefined when the resource is no container service, or is being deleted. */
export function rolloutView(input: WorkloadInput): RolloutView | undefined {
  const { resource, pods } = input;
  if (resource?.workload === undefined || resource.wanted === undefined || resource.record.deleting)
    return undefined;
  const rolloutState = rolloutStateOf(input, resource, resource.wanted);
  const staying = pods.filter((pod) => pod.record.stoppingSince === undefined);
  const { workload } = resource;
  const ahead = prefetchStatus({ workload, staying, stopping: [], hold: rolloutState.hold }, input);
  const current = (): readonly PodEntry[] => currentPods(workload, staying);
  const look = { rolloutState, workload, staying, stopping: [], current, ahead: () => ahead };
  return {
    attempt: rolloutState.start === undefined ? rolloutState.attempt : undefined,
    hold: rolloutState.hold,
    waitsForPromotion: waitsForPromotion(look, input),
    prefetchStatus: describePrefetch(ahead),
    goodRevision: rolloutState.beforeNumber,
  };
}
