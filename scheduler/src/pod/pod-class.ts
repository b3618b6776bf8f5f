import type { Identity } from "../state/identities.ts";
import type { PodSpec } from "../types.ts";
import type { Demand } from "./demand.ts";
import type { PodRules } from "./pod-rules.ts";

/** Everything that placement sees of a pod, which is all but its name. Replicas of one template share a class. */
export interface PodClass {
  readonly demand: Demand;
  readonly identity: Identity;
  readonly rules: PodRules;
  readonly priority: number;
  readonly preempts: boolean;
}

/** Equal for pods whose rules compile to the same; labels that constraints copy from the pod are part of it. */
export function rulesKey(pod: PodSpec): string {
  const { podAffinity, podAntiAffinity, topologySpread } = pod;
  const copied = topologySpread?.flatMap((c) => c.matchLabelKeys ?? []).map((key) => pod.labels?.[key]);
  const aboutPods =
    podAffinity !== undefined || podAntiAffinity !== undefined || topologySpread !== undefined;
  return JSON.stringify([
    aboutPods && [pod.namespace, pod.revision, podAffinity, podAntiAffinity, topologySpread, copied],
    pod.nodeSelector,
    pod.tolerations,
    pod.nodeAffinity,
    pod.claimNodes,
    pod.runtimeClass,
    pod.images,
    pod.images && pod.containers.length + (pod.initContainers?.length ?? 0),
  ]);
}

/** Equal for pods that take the same from their node. */
export function demandKey(pod: PodSpec): string {
  return JSON.stringify([pod.containers, pod.initContainers]);
}

/** Equal for pods that selectors can't tell apart. */
export function identityKey(pod: PodSpec): string {
  const labels = pod.labels === undefined ? [] : Object.entries(pod.labels);
  if (labels.length > 1) labels.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([pod.namespace, pod.workload, pod.revision, labels]);
}

/** Equal for pods of one class. */
export function classKey(pod: PodSpec): string {
  return joinKeys(pod, demandKey(pod), rulesKey(pod), identityKey(pod));
}

export function joinKeys(pod: PodSpec, demand: string, rules: string, identity: string): string {
  return `${pod.priority ?? 0}${pod.preemptionPolicy === "Never" ? "-" : "+"}${demand}${rules}${identity}`;
}
