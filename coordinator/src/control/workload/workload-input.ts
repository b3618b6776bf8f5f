import type { ContainerServiceStatus, RevisionRecord } from "@forage/proto/forage/store/v1/store";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { Since } from "./availability.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** Everything that `planWorkload` decides by. `workloadInput` builds it from the view. */
export interface WorkloadInput {
  /** The resource. Undefined: its record is removed, and pods are left. */
  readonly resource: ResourceEntry | undefined;
  /** The workload's pods of all revisions, including stopping ones. */
  readonly pods: readonly PodEntry[];
  /** The stored decisions. */
  readonly status: ContainerServiceStatus | undefined;
  /** The number of failed pods of the present rollout attempt that are kept already. Undefined: none. */
  readonly keptPods?: number;
  /** The revisions, in any order. */
  readonly revisions: readonly RevisionRecord[];
  /** A dependency is missing, so no new revision begins. */
  readonly held?: boolean;
  /** Reports whether a node is there to stop the pod; a node that was forgotten has taken its pods with it. */
  readonly nodeExists: (name: string) => boolean;
  /** Reports whether the node is reachable, so that its last status is current. */
  readonly nodeReady: (name: string) => boolean;
  /** Returns the reason why a pod has no node yet. */
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  /** Returns the node's progress with the images of the workload's pods. */
  readonly imagesOn: (workload: Workload, node: string) => ImagesOnNode;
  /** The time by the clock of pods' times. */
  readonly nowMs: number;
  /** The present time less the time in which this coordinator could act. Without a coordinator no rollout could progress. */
  readonly upSinceMs: number;
  /** Translates a time on record: leaves out the time in which the coordinator could not act. Default: all time counts. */
  readonly since?: Since;
  readonly limits: ProgressLimits;
  /** Returns the pods to stop for an even spread of the rest. */
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
}
