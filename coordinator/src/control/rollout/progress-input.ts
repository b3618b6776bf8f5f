import type { RolloutReason, RolloutResource } from "@forage/proto/forage/store/v1/store";
import type { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { ServiceFailure } from "../../destination/service-failure.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { Waiting } from "../depends/waits-for.ts";
import type { JobProgressInput } from "../job/progress-input.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { ProgressLimits } from "../workload/progress-limits.ts";
import type { RolloutView } from "../workload/rollout-view.ts";

/** How far one resource of a rollout has come. */
export interface ResourceProgress {
  readonly kind: string;
  readonly name: string;
  readonly action: string;
  readonly status: RolloutStatus;
  readonly message: string;
  readonly reason: RolloutReason;
}

export interface ProgressInput {
  readonly target: RolloutResource;
  readonly rolloutId: string;
  readonly startedMs: number;
  readonly resource: ResourceEntry | undefined;
  /** A newer rollout that names the resource and has not finished, by its id. */
  readonly newer?: string | undefined;
  /** Of the workload, all revisions, stopping ones too. */
  readonly pods: readonly PodEntry[];
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  /** What it depends on that isn't there yet. */
  readonly waitsFor?: readonly Waiting[];
  /** Set when the resource is a job. */
  readonly job?: JobProgressInput | undefined;
  /** Set when it is a container service. */
  readonly rollout?: RolloutView | undefined;
  readonly isReady: (pod: PodEntry) => boolean;
  readonly readyEndpoints: number;
  /** Of a service: why it can have no endpoints; undefined: nothing is wrong with it. */
  readonly serviceFailure?: ServiceFailure | undefined;
  /** Of a service whose target is part of the same rollout: how far that is. */
  readonly targetProgress?: ResourceProgress | undefined;
  /** What is wrong with the route, or the service's inline route; empty: nothing. */
  readonly routeTrouble?: string;
  readonly nowMs: number;
  readonly limits: ProgressLimits;
}
