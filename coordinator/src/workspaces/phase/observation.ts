import type { ActivityRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../state/entries.ts";
import type { WorkspaceSettings } from "../settings.ts";

export interface ObservedNode {
  readonly ready: boolean;
  readonly message: string;
  /** Whether the node has been connected since the coordinator started. */
  readonly seen: boolean;
  /** Whether the node is being removed from the cluster: its certificates no longer count, and its pods stop first. */
  readonly revoked: boolean;
}

/**
 * Returns a time on record as a time of the present clock. One from before the clock was set back, in an earlier process, counts from
 * the start of this process, so that a wrong clock ends no workspace.
 */
export function presentTime(atMs: number, { since, upSinceMs }: Observation): number {
  const presentMs = since(atMs);
  return Number.isFinite(presentMs) ? presentMs : upSinceMs;
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
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** The present time less the time in which this coordinator could act. */
  readonly upSinceMs: number;
  /** Translates a time on record: leaves out the time in which the coordinator could not act. */
  readonly since: (atMs: number) => number;
  readonly settings: WorkspaceSettings;
}
