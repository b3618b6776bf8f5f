import { compileNodeDemand, compileTerm, isEmptyTerm, namedNodes } from "../match/node-selector.ts";
import { everyMatcher, type PodMatcher, type PodTraits, selectorMatcher } from "../match/pod-matcher.ts";
import { reluctantTaints, repellingTaint, toleratesUnschedulable } from "../match/taints.ts";
import { topologyValue } from "../state/topology.ts";
import type { NodeSpec, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from "../types.ts";

/** A query that is answered by a column of the fleet's node facts. Equal keys have equal answers. */
export interface NodeQuestion<A> {
  readonly key: string;
  readonly ask: (node: NodeSpec) => A;
}

export interface PodTerm {
  readonly topologyKey: string;
  readonly matcher: PodMatcher;
  readonly weight: number;
}

export interface SpreadRule {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  /** Matches the counted pods; none if the selector is empty. */
  readonly matcher: PodMatcher;
  /** Reports whether the selector includes a pod; an empty one includes every pod. */
  readonly selects: (pod: PodTraits) => boolean;
  /** The nodes whose domains and pods count. Undefined: all. */
  readonly counted: NodeQuestion<boolean> | undefined;
}

/** A pod's compiled placement rules. Pods of different workloads may share them; see `rulesKey`. */
export interface PodRules {
  /** The nodes on which the pod could ever run, by the nodes' own specifications. */
  readonly admitted: NodeQuestion<boolean>;
  readonly reluctance: NodeQuestion<number>;
  readonly preference: NodeQuestion<number> | undefined;
  /** The sum of the weights of all preferred node affinity terms. */
  readonly preferenceMax: number;
  /** Set if a preferred term can't be parsed. kube-scheduler fails such a pod. */
  readonly preferenceBroken: boolean;
  readonly hard: readonly SpreadRule[];
  readonly soft: readonly SpreadRule[];
  readonly affinity: readonly PodTerm[];
  /** Matches pods that match all required affinity terms. */
  readonly partners: PodMatcher | undefined;
  readonly antiAffinity: readonly PodTerm[];
  /** Preferred affinity, and preferred anti-affinity with a negated weight. */
  readonly preferred: readonly PodTerm[];
  /** Whether to spread replicas even without a constraint. */
  readonly spreadsByDefault: boolean;
  readonly images: readonly string[];
  /** The number of containers of all kinds: it scales the image locality that each image can contribute. */
  readonly containers: number;
  /** A pod with these rules. Properties on which the rules don't depend may differ in other pods. */
  readonly spec: PodSpec;
}

/** Compiles a pod's rules. @throws SchedulerError `invalid_pod`. */
export function compileRules(spec: PodSpec): PodRules {
  const affinity = (spec.podAffinity?.required ?? []).map((term) => podTerm(term, spec, 1));
  const preferences = compilePreferences(spec);
  const constraints = spec.topologySpread ?? [];
  return {
    ...preferences,
    admitted: admission(spec),
    reluctance: {
      key: `reluctance${JSON.stringify(spec.tolerations ?? [])}`,
      ask: (node) => reluctantTaints(spec.tolerations, node),
    },
    hard: spreadRules(
      spec,
      constraints.filter((c) => c.whenUnsatisfiable === "DoNotSchedule"),
    ),
    soft: spreadRules(
      spec,
      constraints.filter((c) => c.whenUnsatisfiable === "ScheduleAnyway"),
    ),
    affinity,
    partners: affinity.length > 0 ? everyMatcher(affinity.map((term) => term.matcher)) : undefined,
    antiAffinity: (spec.podAntiAffinity?.required ?? []).map((term) => podTerm(term, spec, 1)),
    preferred: [
      ...(spec.podAffinity?.preferred ?? []).map((p) => podTerm(p.term, spec, p.weight)),
      ...(spec.podAntiAffinity?.preferred ?? []).map((p) => podTerm(p.term, spec, -p.weight)),
    ],
    spreadsByDefault: constraints.length === 0,
    images: spec.images ?? [],
    containers: spec.containers.length + (spec.initContainers?.length ?? 0),
    spec,
  };
}

function podTerm(term: PodAffinityTerm, spec: PodSpec, weight: number): PodTerm {
  const namespaces = term.namespaces?.length ? term.namespaces : [spec.namespace];
  return { topologyKey: term.topologyKey, matcher: selectorMatcher(term.labelSelector, namespaces), weight };
}

function admission(spec: PodSpec): NodeQuestion<boolean> {
  const names = namedNodes(spec);
  const demand = compileNodeDemand(spec);
  const anywhere = toleratesUnschedulable(spec.tolerations);
  const { tolerations, claimNodes = [], runtimeClass } = spec;
  return {
    key: JSON.stringify([
      tolerations,
      spec.nodeSelector,
      spec.nodeAffinity?.required,
      claimNodes,
      runtimeClass,
    ]),
    ask: (node) =>
      (!node.unschedulable || anywhere) &&
      repellingTaint(tolerations, node) === undefined &&
      (names === undefined || names.has(node.name)) &&
      (demand === undefined || demand(node)) &&
      claimNodes.every((name) => name === node.name) &&
      runs(node, runtimeClass),
  };
}

export function runs(node: NodeSpec, runtimeClass: string | undefined): boolean {
  return !runtimeClass || (node.runtimeClasses?.includes(runtimeClass) ?? false);
}

function compilePreferences(
  spec: PodSpec,
): Pick<PodRules, "preference" | "preferenceMax" | "preferenceBroken"> {
  const terms = (spec.nodeAffinity?.preferred ?? []).filter(
    (p) => p.weight !== 0 && !isEmptyTerm(p.preference),
  );
  const tests = terms.map(({ weight, preference }) => ({ weight, test: compileTerm(preference) }));
  const preference = {
    key: `preference${JSON.stringify(terms)}`,
    ask: (node: NodeSpec) => tests.reduce((sum, { weight, test }) => (test?.(node) ? sum + weight : sum), 0),
  };
  return {
    preference: terms.length > 0 ? preference : undefined,
    preferenceMax: terms.reduce((sum, { weight }) => sum + weight, 0),
    preferenceBroken: tests.some(({ test }) => test === undefined),
  };
}

// Constraints of one kind share a rule: a node must have all their keys to count for any of them.
function spreadRules(spec: PodSpec, constraints: readonly TopologySpreadConstraint[]): SpreadRule[] {
  const keys = constraints.map((constraint) => constraint.topologyKey);
  return constraints.map((constraint) => {
    const selector = spreadMatcher(spec, constraint);
    return {
      topologyKey: constraint.topologyKey,
      maxSkew: constraint.maxSkew,
      minDomains: constraint.minDomains ?? 1,
      matcher: selector.empty ? selectorMatcher(undefined, [spec.namespace]) : selector,
      selects: selector.test,
      counted: countedNodes(spec, constraint, keys),
    };
  });
}

function spreadMatcher(spec: PodSpec, constraint: TopologySpreadConstraint): PodMatcher {
  const own: Record<string, string> = {};
  for (const key of constraint.matchLabelKeys ?? []) {
    const value = spec.labels?.[key];
    if (value !== undefined) own[key] = value;
  }
  const { labelSelector } = constraint;
  if (Object.keys(own).length === 0) return selectorMatcher(labelSelector, [spec.namespace], spec.revision);
  // Keys copied from the pod narrow the selector; a label in both must match both.
  const expressions = [...(labelSelector?.matchExpressions ?? [])];
  for (const [key, value] of Object.entries(own)) expressions.push({ key, operator: "In", values: [value] });
  const narrowed = labelSelector && { ...labelSelector, matchExpressions: expressions };
  return selectorMatcher(narrowed, [spec.namespace], spec.revision);
}

function countedNodes(
  spec: PodSpec,
  constraint: TopologySpreadConstraint,
  keys: readonly string[],
): NodeQuestion<boolean> | undefined {
  const others = keys.filter((key) => key !== constraint.topologyKey);
  const demand = constraint.nodeAffinityPolicy === "Ignore" ? undefined : compileNodeDemand(spec);
  const taints = constraint.nodeTaintsPolicy === "Honor";
  if (others.length === 0 && demand === undefined && !taints) return undefined;
  const { nodeSelector, nodeAffinity, tolerations = [] } = spec;
  const affinityKey = demand && [nodeSelector, nodeAffinity?.required];
  return {
    key: `counted${JSON.stringify([[...others].sort(), affinityKey, taints && tolerations])}`,
    ask: (node) =>
      others.every((key) => topologyValue(node, key) !== undefined) &&
      (demand === undefined || demand(node)) &&
      (!taints || repellingTaint(tolerations, node) === undefined),
  };
}
