// Implements the semantics directly, one rule after another. It deliberately shares only types with the package.
import type {
  HostPort,
  LabelSelector,
  NodeSelectorTerm,
  NodeSpec,
  PodAffinityTerm,
  PodSpec,
  SelectorRequirement,
  Taint,
} from "../../src/types.ts";

type Labels = Readonly<Record<string, string>>;

const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;

export function topologyValue(node: NodeSpec, key: string): string | undefined {
  const literal = node.labels[key];
  if (literal !== undefined) return literal;
  if (key === "zone") return node.labels["topology.kubernetes.io/zone"];
  if (key === "hostname") return node.labels["kubernetes.io/hostname"] ?? node.name;
  return undefined;
}

export function isHostnameKey(key: string): boolean {
  return key === "kubernetes.io/hostname" || key === "hostname";
}

function int64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  return value >= -(2n ** 63n) && value < 2n ** 63n ? value : undefined;
}

function parses(expression: SelectorRequirement): boolean {
  const values = expression.values ?? [];
  if (values.some((value) => value.length > 63 || !LABEL_VALUE.test(value))) return false;
  switch (expression.operator) {
    case "In":
    case "NotIn":
      return values.length > 0;
    case "Exists":
    case "DoesNotExist":
      return values.length === 0;
    case "Gt":
    case "Lt":
      return values.length === 1 && int64(values[0]) !== undefined;
  }
}

function holds(expression: SelectorRequirement, actual: string | undefined): boolean {
  const values = expression.values ?? [];
  switch (expression.operator) {
    case "In":
      return actual !== undefined && values.includes(actual);
    case "NotIn":
      return actual === undefined || !values.includes(actual);
    case "Exists":
      return actual !== undefined;
    case "DoesNotExist":
      return actual === undefined;
    case "Gt":
    case "Lt": {
      const left = int64(actual);
      const right = int64(values[0]);
      if (left === undefined || right === undefined) return false;
      return expression.operator === "Gt" ? left > right : left < right;
    }
  }
}

function fieldHolds(expression: SelectorRequirement, node: NodeSpec): boolean {
  if (expression.key !== "metadata.name" || expression.values?.length !== 1) return false;
  if (expression.operator === "In") return expression.values[0] === node.name;
  return expression.operator === "NotIn" && expression.values[0] !== node.name;
}

export function termIsEmpty(term: NodeSelectorTerm): boolean {
  return (term.matchExpressions ?? []).length === 0 && (term.matchFields ?? []).length === 0;
}

export function termParses(term: NodeSelectorTerm): boolean {
  return (term.matchExpressions ?? []).every(parses);
}

export function termMatches(term: NodeSelectorTerm, node: NodeSpec): boolean {
  if (termIsEmpty(term) || !termParses(term)) return false;
  return (
    (term.matchExpressions ?? []).every((e) => holds(e, node.labels[e.key])) &&
    (term.matchFields ?? []).every((e) => fieldHolds(e, node))
  );
}

export function nodeMatches(pod: PodSpec, node: NodeSpec): boolean {
  for (const [key, value] of Object.entries(pod.nodeSelector ?? {})) {
    if (node.labels[key] !== value) return false;
  }
  const required = pod.nodeAffinity?.required;
  return required === undefined || required.some((term) => termMatches(term, node));
}

/** Returns the names to which the node is restricted if every required term names nodes. Undefined: no restriction. */
export function namedNodes(pod: PodSpec): Set<string> | undefined {
  const required = pod.nodeAffinity?.required ?? [];
  if (required.length === 0) return undefined;
  const all = new Set<string>();
  for (const term of required) {
    const sets = (term.matchFields ?? [])
      .filter((e) => e.key === "metadata.name" && e.operator === "In")
      .map((e) => new Set(e.values ?? []));
    if (sets.length === 0) return undefined;
    for (const name of sets[0] ?? []) if (sets.every((set) => set.has(name))) all.add(name);
  }
  return all;
}

export function labelsMatch(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (labels[key] !== value) return false;
  }
  return (selector.matchExpressions ?? []).every((e) => holds(e, labels[e.key]));
}

export function selectorIsEmpty(selector: LabelSelector): boolean {
  return (
    Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0
  );
}

/** Reports whether a term of `owner` selects the pod `other`. */
export function podTermMatches(term: PodAffinityTerm, owner: PodSpec, other: PodSpec): boolean {
  const namespaces = (term.namespaces ?? []).length > 0 ? (term.namespaces ?? []) : [owner.namespace];
  return namespaces.includes(other.namespace) && labelsMatch(term.labelSelector, other.labels ?? {});
}

export function tolerated(pod: PodSpec, taint: Taint): boolean {
  return (pod.tolerations ?? []).some((toleration) => {
    if (toleration.effect && toleration.effect !== taint.effect) return false;
    if (toleration.key && toleration.key !== taint.key) return false;
    if (toleration.operator === "Exists") return true;
    return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
  });
}

export function hostPorts(pod: PodSpec): HostPort[] {
  const sidecars = (pod.initContainers ?? []).filter((c) => c.restartPolicy === "Always");
  return [...pod.containers, ...sidecars].flatMap((c) => c.hostPorts ?? []).filter((p) => p.port > 0);
}

export function portsConflict(a: HostPort, b: HostPort): boolean {
  const [ipA, ipB] = [a.hostIP || "0.0.0.0", b.hostIP || "0.0.0.0"];
  return (
    a.port === b.port &&
    (a.protocol || "TCP") === (b.protocol || "TCP") &&
    (ipA === ipB || ipA === "0.0.0.0" || ipB === "0.0.0.0")
  );
}
