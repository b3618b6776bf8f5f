import type { RolloutAttempt } from "@forage/proto/forage/store/v1/store";
import type { PodEntry } from "../../state/entries.ts";
import { currentPods } from "./current-pods.ts";
import { waitsForPromotion } from "./evaluate-rollout.ts";
import type { Hold } from "./hold.ts";
import { describePrefetch, prefetchStatus } from "./prefetch-status.ts";
import { rolloutStateOf } from "./rollout-state.ts";
import type { WorkloadInput } from "./workload-input.ts";

/** The state of a container service's rollout attempt, as reported to clients. */
export interface RolloutView {
  /** The current attempt. Undefined: none has begun. */
  readonly attempt: RolloutAttempt | undefined;
  readonly hold: Hold;
  /** Whether all pods of a canary are available and it waits for its promotion. */
  readonly waitsForPromotion: boolean;
  /** The reason why older pods stay until images are pulled. Empty: none. */
  readonly prefetchStatus: string;
  /** The revision that a rollback would return to. 0: there is none. */
  readonly goodRevision: number;
}

/** Returns the state. Undefined if the resource is no container service, or is being deleted. */
export function rolloutView(input: WorkloadInput): RolloutView | undefined {
  const { resource, pods } = input;
  if (resource?.workload === undefined || resource.applied === undefined || resource.record.deleting)
    return undefined;
  const rolloutState = rolloutStateOf(input, resource, resource.applied);
  const staying = pods.filter((pod) => pod.record.stoppingSince === undefined);
  const { workload } = resource;
  const ahead = prefetchStatus({ workload, staying, stopping: [], hold: rolloutState.hold }, input);
  const current = (): readonly PodEntry[] => currentPods(workload, staying);
  const context = { rolloutState, workload, staying, stopping: [], current, ahead: () => ahead };
  return {
    attempt: rolloutState.start === undefined ? rolloutState.attempt : undefined,
    hold: rolloutState.hold,
    waitsForPromotion: waitsForPromotion(context, input),
    prefetchStatus: describePrefetch(ahead),
    goodRevision: rolloutState.beforeNumber,
  };
}
