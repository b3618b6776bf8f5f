import type { ContainerServiceStatus, RevisionRecord } from "@forage/proto/forage/store/v1/store";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { TranslateTime } from "./availability.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** The input of `planWorkload`, which `workloadInput` builds from the view. */
export interface WorkloadInput {
  /** The resource. Undefined: its record is removed, but pods are left. */
  readonly resource: ResourceEntry | undefined;
  /** The workload's pods of all revisions, including stopping ones. */
  readonly pods: readonly PodEntry[];
  /** The stored decisions. */
  readonly status: ContainerServiceStatus | undefined;
  /** The number of failed pods of the current rollout attempt that are kept already. Undefined: none. */
  readonly keptPods?: number;
  /** The revisions, in any order. */
  readonly revisions: readonly RevisionRecord[];
  /** Whether dependencies are unmet, so that no new revision begins. */
  readonly held?: boolean;
  /** Reports whether the node exists. A removed node can't stop its pods any more. */
  readonly nodeExists: (name: string) => boolean;
  /** Reports whether the node is reachable, so that the last status of its pods is current. */
  readonly nodeReady: (name: string) => boolean;
  /** Returns the reason why a pod is unschedulable. Undefined: it is not, or it has not been tried yet. */
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  /** Returns the node's progress with the images of the workload's pods. */
  readonly imagesOn: (workload: Workload, node: string) => ImagesOnNode;
  /** The time of the clock that recorded the pods' times. */
  readonly nowMs: number;
  /**
   * The current time minus the time for which this coordinator could act, in milliseconds since the epoch. Without a
   * coordinator no rollout could progress.
   */
  readonly upSinceMs: number;
  /**
   * Moves a recorded time forward by the time in which the coordinator could not act. Default: all time counts.
   */
  readonly since?: TranslateTime;
  readonly limits: ProgressLimits;
  /** Returns the pods to stop so that the rest is spread evenly. */
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
}
