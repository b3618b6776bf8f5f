import type { PodStatus } from "../pods/decide/pod-status.ts";
import type { Pod } from "../pods/pod.ts";

/** Runs the assigned pods. */
export interface AssignedPods {
  /** Replaces the whole assignment. */
  replace(pods: readonly Pod[]): void;
  apply(upserts: readonly Pod[], removals: readonly string[]): void;
  statuses(): readonly PodStatus[];
}
