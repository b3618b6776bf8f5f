import type { ActivityRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../state/entries.ts";
import type { WorkspaceSettings } from "../settings.ts";

export interface ObservedNode {
  readonly ready: boolean;
  readonly message: string;
  /** Whether the node has connected since the coordinator started. */
  readonly seen: boolean;
  /**
   * Whether the node is being removed from the cluster. Its certificates are revoked, and its pods
   * stop first.
   */
  readonly revoked: boolean;
}

/**
 * Converts a stored time to the present clock. A time that can't be converted, because the clock
 * was set back in an earlier process, becomes the start of this process, so that a wrong clock
 * never ends a workspace.
 */
export function presentTime(atMs: number, { since, upSinceMs }: Observation): number {
  const presentMs = since(atMs);
  return Number.isFinite(presentMs) ? presentMs : upSinceMs;
}

/** The inputs of an evaluation besides the instance's record. */
export interface Observation {
  /** The pod's record; undefined if there is none. */
  readonly pod: PodEntry | undefined;
  /** The node that holds the content; undefined if it is not in the cluster. */
  readonly node: ObservedNode | undefined;
  readonly activity: ActivityRecord | undefined;
  /**
   * The reason why the pod is not assigned to a node. Empty if it is, or if the scheduler has not
   * tried yet.
   */
  readonly unschedulable: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** The present time minus the time in which this coordinator was able to act. */
  readonly upSinceMs: number;
  /** Converts a stored time to exclude the time in which the coordinator could not act. */
  readonly since: (atMs: number) => number;
  readonly settings: WorkspaceSettings;
}
