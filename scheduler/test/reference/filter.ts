import type { NodeSpec, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from "../../src/types.ts";
import * as match from "./match.ts";
import { capacity, needs, resourceNames, used } from "./resources.ts";

export interface Bound {
  readonly pod: PodSpec;
  readonly node: NodeSpec;
  readonly terminating: boolean;
  /** The rank of the pod's start; smaller is earlier. */
  readonly start: number;
}

export interface Cluster {
  readonly nodes: readonly NodeSpec[];
  readonly bound: readonly Bound[];
}

export interface Rejection {
  readonly filter: string;
  readonly resolvable: boolean;
}

/**
 * Returns the first filter, in kube-scheduler's order, that rejects the node for the pod, or undefined if none does.
 */
export function reject(pod: PodSpec, node: NodeSpec, cluster: Cluster): Rejection | undefined {
  const named = match.namedNodes(pod);
  if (named !== undefined && !named.has(node.name))
    return { filter: "PreFilter:[NodeAffinity]", resolvable: false };
  if (
    node.unschedulable &&
    !match.tolerated(pod, { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" })
  )
    return { filter: "NodeUnschedulable", resolvable: false };
  if ((node.taints ?? []).some((t) => t.effect !== "PreferNoSchedule" && !match.tolerated(pod, t)))
    return { filter: "TaintToleration", resolvable: false };
  if (!match.nodeMatches(pod, node)) return { filter: "NodeAffinity", resolvable: false };
  const here = cluster.bound.filter((b) => b.node.name === node.name).map((b) => b.pod);
  const taken = here.flatMap(match.hostPorts);
  if (match.hostPorts(pod).some((port) => taken.some((other) => match.portsConflict(port, other))))
    return { filter: "NodePorts", resolvable: true };
  return (
    resources(pod, node, here) ??
    pinned(pod, node) ??
    spread(pod, node, cluster) ??
    affinity(pod, node, cluster)
  );
}

function resources(pod: PodSpec, node: NodeSpec, here: readonly PodSpec[]): Rejection | undefined {
  const short = resourceNames(pod).filter((resource) => {
    const need = needs(pod, resource);
    return need > 0 && need > capacity(node, resource) - used(here, resource);
  });
  const impossible = short.some((resource) => needs(pod, resource) > capacity(node, resource));
  if (short.length > 0 || here.length + 1 > capacity(node, "pods"))
    return { filter: "NodeResourcesFit", resolvable: !impossible };
  return undefined;
}

function pinned(pod: PodSpec, node: NodeSpec): Rejection | undefined {
  if ((pod.claimNodes ?? []).some((name) => name !== node.name))
    return { filter: "VolumeBinding", resolvable: false };
  if (pod.runtimeClass && !(node.runtimeClasses ?? []).includes(pod.runtimeClass))
    return { filter: "RuntimeClass", resolvable: false };
  return undefined;
}

/** Reports whether `other` counts for a spread constraint of `pod`. */
export function counts(constraint: TopologySpreadConstraint, pod: PodSpec, other: PodSpec): boolean {
  return (
    other.namespace === pod.namespace &&
    selects(constraint, pod, other) &&
    (pod.revision === undefined || other.revision === pod.revision)
  );
}

export function selects(constraint: TopologySpreadConstraint, pod: PodSpec, other: PodSpec): boolean {
  const labels = other.labels ?? {};
  const same = (constraint.matchLabelKeys ?? []).every((key) => {
    const own = pod.labels?.[key];
    return own === undefined || labels[key] === own;
  });
  return same && match.labelsMatch(constraint.labelSelector, labels);
}

/**
 * Reports whether a constraint counts no pods, as with an empty selector. Keys copied from the pod make it non-empty.
 */
export function countsNothing(constraint: TopologySpreadConstraint, pod: PodSpec): boolean {
  const copied = (constraint.matchLabelKeys ?? []).some((key) => pod.labels?.[key] !== undefined);
  return constraint.labelSelector !== undefined && match.selectorIsEmpty(constraint.labelSelector) && !copied;
}

export function included(constraint: TopologySpreadConstraint, pod: PodSpec, node: NodeSpec): boolean {
  if (constraint.nodeAffinityPolicy !== "Ignore" && !match.nodeMatches(pod, node)) return false;
  if (constraint.nodeTaintsPolicy !== "Honor") return true;
  return (node.taints ?? []).every((t) => t.effect === "PreferNoSchedule" || match.tolerated(pod, t));
}

export function countOn(
  node: NodeSpec,
  constraint: TopologySpreadConstraint,
  pod: PodSpec,
  cluster: Cluster,
): number {
  if (countsNothing(constraint, pod)) return 0;
  return cluster.bound.filter(
    (b) => b.node.name === node.name && !b.terminating && counts(constraint, pod, b.pod),
  ).length;
}

function spread(pod: PodSpec, node: NodeSpec, cluster: Cluster): Rejection | undefined {
  const hard = (pod.topologySpread ?? []).filter((c) => c.whenUnsatisfiable === "DoNotSchedule");
  for (const constraint of hard) {
    const value = match.topologyValue(node, constraint.topologyKey);
    if (value === undefined) return { filter: "PodTopologySpread", resolvable: false };
    const domains = new Map<string, number>();
    for (const other of cluster.nodes) {
      if (hard.some((c) => match.topologyValue(other, c.topologyKey) === undefined)) continue;
      if (!included(constraint, pod, other)) continue;
      const domain = match.topologyValue(other, constraint.topologyKey) ?? "";
      domains.set(domain, (domains.get(domain) ?? 0) + countOn(other, constraint, pod, cluster));
    }
    let least = domains.size === 0 ? 2 ** 31 - 1 : Math.min(...domains.values());
    if (domains.size < (constraint.minDomains ?? 1)) least = 0;
    const self = selects(constraint, pod, pod) ? 1 : 0;
    if ((domains.get(value) ?? 0) + self - least > constraint.maxSkew)
      return { filter: "PodTopologySpread", resolvable: true };
  }
  return undefined;
}

function affinity(pod: PodSpec, node: NodeSpec, cluster: Cluster): Rejection | undefined {
  const required = pod.podAffinity?.required ?? [];
  const filter = "InterPodAffinity";
  const all = (other: PodSpec) => required.every((term) => match.podTermMatches(term, pod, other));
  const value = (where: NodeSpec, term: PodAffinityTerm) => match.topologyValue(where, term.topologyKey);
  if (required.length > 0) {
    const partners = cluster.bound.filter((b) => all(b.pod));
    const lacksKey = required.some((term) => value(node, term) === undefined);
    const together = (term: PodAffinityTerm) =>
      partners.some((b) => value(b.node, term) === value(node, term));
    const nowhere = partners.every((b) => required.every((term) => value(b.node, term) === undefined));
    if (lacksKey || !(required.every(together) || (nowhere && all(pod))))
      return { filter, resolvable: false };
  }
  const meets = (term: PodAffinityTerm, where: NodeSpec) =>
    value(where, term) !== undefined && value(where, term) === value(node, term);
  for (const term of pod.podAntiAffinity?.required ?? []) {
    if (cluster.bound.some((b) => match.podTermMatches(term, pod, b.pod) && meets(term, b.node)))
      return { filter, resolvable: true };
  }
  for (const b of cluster.bound) {
    for (const term of b.pod.podAntiAffinity?.required ?? []) {
      if (match.podTermMatches(term, b.pod, pod) && meets(term, b.node)) return { filter, resolvable: true };
    }
  }
  return undefined;
}
