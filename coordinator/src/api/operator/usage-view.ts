import type { Usage } from "@forage/proto/forage/operator/v1/operator";
import type { PodSample } from "../../metrics/pod-metrics.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeHealth, PodEntry } from "../../state/entries.ts";

/** The newest samples of pods, by uid. */
export interface PodUsageSource {
  get(podUid: string): PodSample | undefined;
}

/**
 * Returns the host's usage from its last heartbeat. Undefined while the node is not connected, because the values are out
 * of date then.
 */
export function nodeUsage({ ready, usage }: NodeHealth): Usage | undefined {
  if (!ready || usage === undefined) return undefined;
  return { cpuMilli: BigInt(usage.cpuMilli), memoryBytes: BigInt(usage.memoryBytes) };
}

/** Returns the pod's usage. Undefined if it is unknown, or if its node is not connected. */
export function podUsage(
  state: ClusterView,
  { record }: PodEntry,
  source: PodUsageSource,
): Usage | undefined {
  const sample = state.node(record.node)?.health.ready ? source.get(record.uid) : undefined;
  if (sample?.memoryBytes === undefined) return undefined;
  const { cpuCores, memoryBytes } = sample;
  return {
    cpuMilli: cpuCores === undefined ? undefined : BigInt(Math.round(cpuCores * 1000)),
    memoryBytes: BigInt(memoryBytes),
  };
}
