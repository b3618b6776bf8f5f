import type { ActivityRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../state/entries.ts";
import type { WorkspaceSettings } from "../settings.ts";

export interface ObservedNode {
  readonly ready: boolean;
  readonly message: string;
  /** Its certificates no longer count: it is being removed from the cluster, pods first. */
  readonly revoked: boolean;
}

/** The inputs of an evaluation besides the instance's record. */
export interface Observation {
  /** The pod's record; undefined: there is none. */
  readonly pod: PodEntry | undefined;
  /** The node that holds the content; undefined: it is not in the cluster. */
  readonly node: ObservedNode | undefined;
  readonly activity: ActivityRecord | undefined;
  /** The reason why the pod has no node; empty if it has one, or if the scheduler has not tried yet. */
  readonly unschedulable: string;
  /** Milliseconds since the epoch. It follows the monotonic clock, so that a wall clock that is set times no workspace out. */
  readonly nowMs: number;
  /** When this coordinator started, by the same clock. */
  readonly upSinceMs: number;
  readonly settings: WorkspaceSettings;
}
