import type { RolloutReason, RolloutResource } from "@forage/proto/forage/store/v1/store";
import type { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { ServiceFailure } from "../../destination/service-failure.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { UnmetDependency } from "../depends/waits-for.ts";
import type { JobProgressInput } from "../job/progress-input.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { TranslateTime } from "../workload/availability.ts";
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
  /** Whether the target's last rollout attempt has ended, so that no pod is starting. */
  readonly settled: boolean;
}

export interface ProgressInput {
  readonly target: RolloutResource;
  readonly rolloutId: string;
  readonly startedMs: number;
  readonly resource: ResourceEntry | undefined;
  /** The id of a newer unfinished rollout that contains the resource. */
  readonly newer?: string | undefined;
  /** The workload's pods of all revisions, including stopping ones. */
  readonly pods: readonly PodEntry[];
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  /** The unmet dependencies. */
  readonly waitsFor?: readonly UnmetDependency[];
  /** The job's input. Set if the resource is a job. */
  readonly job?: JobProgressInput | undefined;
  /** The state of the rollout attempt. Set if the resource is a container service. */
  readonly rollout?: RolloutView | undefined;
  readonly isReady: (pod: PodEntry) => boolean;
  readonly readyEndpoints: number;
  /** The reason why a service can have no endpoints. Undefined: it can. */
  readonly serviceFailure?: ServiceFailure | undefined;
  /** The progress of a service's target that is part of the same rollout. */
  readonly targetProgress?: ResourceProgress | undefined;
  /** The service's target, if it belongs to another rollout and has replicas but no ready pod. */
  readonly idleTarget?: IdleTarget | undefined;
  /** The error of the route or of the service's inline route. Empty: it has none. */
  readonly routeProblem?: string;
  readonly nowMs: number;
  /**
   * Moves a recorded time forward by the time in which the coordinator could not act. Default: all time counts.
   */
  readonly since?: TranslateTime;
  readonly limits: ProgressLimits;
}
