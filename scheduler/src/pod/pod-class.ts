import type { Identity } from "../state/identities.ts";
import type { ContainerSpec, PodSpec } from "../types.ts";
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

/** The key of pods that have no rules but images. */
interface KnownRules {
  readonly containers: number;
  readonly key: string;
}

/**
 * Returns the keys of pods like the functions of this module, and computes those of equal parts once. The lists of containers
 * and images must not be changed after a pod with them was given.
 */
export class ClassKeys {
  readonly #demands = new WeakMap<readonly ContainerSpec[], string>();
  readonly #rules = new WeakMap<readonly string[], KnownRules>();

  demand(pod: PodSpec): string {
    if (pod.initContainers !== undefined) return demandKey(pod);
    const known = this.#demands.get(pod.containers);
    if (known !== undefined) return known;
    const key = demandKey(pod);
    this.#demands.set(pod.containers, key);
    return key;
  }

  rules(pod: PodSpec): string {
    const { images, containers, initContainers } = pod;
    if (images === undefined || initContainers !== undefined || hasRules(pod)) return rulesKey(pod);
    const known = this.#rules.get(images);
    if (known?.containers === containers.length) return known.key;
    const key = rulesKey(pod);
    this.#rules.set(images, { containers: containers.length, key });
    return key;
  }

  of(pod: PodSpec): string {
    return joinKeys(pod, this.demand(pod), this.rules(pod), identityKey(pod));
  }
}

/** Reports whether a field other than the images is part of the pod's rules. */
function hasRules(pod: PodSpec): boolean {
  return (
    pod.podAffinity !== undefined ||
    pod.podAntiAffinity !== undefined ||
    pod.topologySpread !== undefined ||
    pod.nodeSelector !== undefined ||
    pod.tolerations !== undefined ||
    pod.nodeAffinity !== undefined ||
    pod.claimNodes !== undefined ||
    pod.runtimeClass !== undefined
  );
}

/** Returns a key that is equal for pods that selectors can't distinguish. */
export function identityKey(pod: PodSpec): string {
  const labels = pod.labels === undefined ? [] : Object.entries(pod.labels);
  if (labels.length > 1) labels.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([pod.namespace, pod.workload, pod.revision, labels]);
}

export function joinKeys(pod: PodSpec, demand: string, rules: string, identity: string): string {
  return `${pod.priority ?? 0}${pod.preemptionPolicy === "Never" ? "-" : "+"}${demand}${rules}${identity}`;
}
