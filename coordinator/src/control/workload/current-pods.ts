import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Returns the pods of the workload's effective revision. */
export function currentPods({ currentHashes }: Workload, pods: readonly PodEntry[]): PodEntry[] {
  return pods.filter((pod) => currentHashes.has(pod.record.templateHash));
}
