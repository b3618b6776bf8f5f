import type { PodStatus } from "../pods/decide/pod-status.ts";
import type { Pod } from "../pods/pod.ts";

/** The part of the agent that runs the assigned pods. */
export interface AssignedPods {
  /** Replaces the whole assignment. */
  replace(pods: readonly Pod[]): void;
  apply(upserts: readonly Pod[], removals: readonly string[]): void;
  statuses(): readonly PodStatus[];
}
