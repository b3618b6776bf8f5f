import type { RolloutReason, RolloutResource } from "@forage/proto/forage/store/v1/store";
import type { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { ServiceFailure } from "../../destination/service-failure.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { Waiting } from "../depends/waits-for.ts";
import type { JobProgressInput } from "../job/progress-input.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { Since } from "../workload/availability.ts";
import type { ProgressLimits } from "../workload/progress-limits.ts";
import type { RolloutView } from "../workload/rollout-view.ts";

/** The progress of one resource of a rollout. */
export interface ResourceProgress {
  readonly kind: string;
  readonly name: string;
  readonly action: string;
  readonly status: RolloutStatus;
  readonly message: string;
  readonly reason: RolloutReason;
}

export interface IdleTarget {
  readonly name: string;
  /** Whether its last rollout attempt has ended, so that nothing is on its way. */
  readonly settled: boolean;
}

export interface ProgressInput {
  readonly target: RolloutResource;
  readonly rolloutId: string;
  readonly startedMs: number;
  readonly resource: ResourceEntry | undefined;
  /** A newer rollout that names the resource and has not finished, by its id. */
  readonly newer?: string | undefined;
  /** The workload's pods of all revisions, including stopping ones. */
  readonly pods: readonly PodEntry[];
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  /** The unmet dependencies. */
  readonly waitsFor?: readonly Waiting[];
  /** Set when the resource is a job. */
  readonly job?: JobProgressInput | undefined;
  /** Set when it is a container service. */
  readonly rollout?: RolloutView | undefined;
  readonly isReady: (pod: PodEntry) => boolean;
  readonly readyEndpoints: number;
  /** The reason why a service can't have endpoints. Undefined if there is none. */
  readonly serviceFailure?: ServiceFailure | undefined;
  /** The progress of a service's target in the same rollout. */
  readonly targetProgress?: ResourceProgress | undefined;
  /** A service's target that another rollout made, and of which no pod serves although it has replicas. */
  readonly idleTarget?: IdleTarget | undefined;
  /** The fault of the route or of the service's inline route. Empty if there is none. */
  readonly routeTrouble?: string;
  readonly nowMs: number;
  /** Translates a time on record. Default: all time counts. */
  readonly since?: Since;
  readonly limits: ProgressLimits;
}
