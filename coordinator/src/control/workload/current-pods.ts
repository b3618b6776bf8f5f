import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Returns the pods that are of the workload's effective revision. */
export function currentPods({ currentHashes }: Workload, pods: readonly PodEntry[]): PodEntry[] {
  return pods.filter((pod) => currentHashes.has(pod.record.templateHash));
}
