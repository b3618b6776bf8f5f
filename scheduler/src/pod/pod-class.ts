import type { Identity } from "../state/identities.ts";
import type { PodSpec } from "../types.ts";
import type { Demand } from "./demand.ts";
import type { PodRules } from "./pod-rules.ts";

/** All properties of a pod that placement uses, which excludes its name. Replicas of one template share a class. */
export interface PodClass {
  readonly demand: Demand;
  readonly identity: Identity;
  readonly rules: PodRules;
  readonly priority: number;
  readonly preempts: boolean;
}

/**
 * Returns a key that is equal for pods whose rules compile to the same result. It includes labels that constraints copy
 * from the pod.
 */
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

/** Returns a key that is equal for pods with the same demand. */
export function demandKey(pod: PodSpec): string {
  return JSON.stringify([pod.containers, pod.initContainers]);
}

/** Returns a key that is equal for pods that selectors can't distinguish. */
export function identityKey(pod: PodSpec): string {
  const labels = pod.labels === undefined ? [] : Object.entries(pod.labels);
  if (labels.length > 1) labels.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([pod.namespace, pod.workload, pod.revision, labels]);
}

/** Returns a key that is equal for pods of one class. */
export function classKey(pod: PodSpec): string {
  return joinKeys(pod, demandKey(pod), rulesKey(pod), identityKey(pod));
}

export function joinKeys(pod: PodSpec, demand: string, rules: string, identity: string): string {
  return `${pod.priority ?? 0}${pod.preemptionPolicy === "Never" ? "-" : "+"}${demand}${rules}${identity}`;
}
