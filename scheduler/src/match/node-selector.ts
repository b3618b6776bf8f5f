import type { NodeSelectorTerm, NodeSpec, PodSpec, SelectorRequirement } from "../types.ts";
import { compileRequirement } from "./requirement.ts";

export type NodeTest = (node: NodeSpec) => boolean;

const NAME_FIELD = "metadata.name";

const never: NodeTest = () => false;

/** Compiles the node selector and the required node affinity. Returns undefined if the pod has neither. */
export function compileNodeDemand(pod: Pick<PodSpec, "nodeSelector" | "nodeAffinity">): NodeTest | undefined {
  const labels = Object.entries(pod.nodeSelector ?? {});
  const terms = pod.nodeAffinity?.required?.map((term) => compileTerm(term) ?? never);
  if (labels.length === 0 && terms === undefined) return undefined;
  return (node) =>
    labels.every(([key, value]) => node.labels[key] === value) &&
    (terms === undefined || terms.some((term) => term(node)));
}

/** A requirement of the pod's node selector or required node affinity that the node doesn't meet, with the node's own value. */
export interface Mismatch {
  /** The reason without the node's own values, which is equal for all nodes that fail the requirement. */
  readonly reason: string;
  readonly detail: string;
}

/** Returns the first requirement that the node doesn't meet, or undefined if it meets all. */
export function mismatchOf(
  pod: Pick<PodSpec, "nodeSelector" | "nodeAffinity">,
  node: NodeSpec,
): Mismatch | undefined {
  for (const [key, value] of Object.entries(pod.nodeSelector ?? {}))
    if (node.labels[key] !== value)
      return { reason: `node selector ${key}=${value} doesn't match`, detail: labelText(node, key) };
  const terms = pod.nodeAffinity?.required;
  if (terms === undefined || terms.some((term) => compileTerm(term)?.(node))) return undefined;
  const [only] = terms;
  if (terms.length !== 1 || only === undefined)
    return { reason: `none of ${terms.length} node affinity terms matches`, detail: "" };
  for (const expression of only.matchExpressions ?? []) {
    const test = compileRequirement(expression);
    if (test?.(node.labels[expression.key])) continue;
    const reason = `node affinity ${requirementText(expression)} doesn't match`;
    return { reason, detail: test === undefined ? "it can't be read" : labelText(node, expression.key) };
  }
  for (const field of only.matchFields ?? [])
    if (!compileField(field)(node))
      return { reason: `node affinity ${requirementText(field)} doesn't match`, detail: "" };
  return { reason: "node affinity has an empty term, which matches no node", detail: "" };
}

function labelText({ labels }: NodeSpec, key: string): string {
  const value = labels[key];
  return value === undefined ? `no label ${key}` : `${key} is ${value === "" ? '""' : value}`;
}

/** The number of values shown in a message. */
const SHOWN_VALUES = 5;

function requirementText({ key, operator, values = [] }: SelectorRequirement): string {
  const shown = values.slice(0, SHOWN_VALUES).join(", ") + (values.length > SHOWN_VALUES ? ", …" : "");
  switch (operator) {
    case "In":
      return `${key} in (${shown})`;
    case "NotIn":
      return `${key} not in (${shown})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "Gt":
      return `${key} > ${shown}`;
    case "Lt":
      return `${key} < ${shown}`;
    default:
      return operator satisfies never;
  }
}

/**
 * Compiles one term. Returns undefined if it is malformed: a required term then matches nothing, and a preferred one is
 * an error.
 */
export function compileTerm(term: NodeSelectorTerm): NodeTest | undefined {
  if (isEmptyTerm(term)) return never;
  const tests: NodeTest[] = [];
  for (const requirement of term.matchExpressions ?? []) {
    const test = compileRequirement(requirement);
    if (test === undefined) return undefined;
    tests.push((node) => test(node.labels[requirement.key]));
  }
  for (const requirement of term.matchFields ?? []) tests.push(compileField(requirement));
  return (node) => tests.every((test) => test(node));
}

export function isEmptyTerm(term: NodeSelectorTerm): boolean {
  return !term.matchExpressions?.length && !term.matchFields?.length;
}

/**
 * Returns the names to which the node is restricted if each required term names nodes. Undefined: no restriction. An
 * empty set: the terms contradict each other.
 */
export function namedNodes(pod: Pick<PodSpec, "nodeAffinity">): ReadonlySet<string> | undefined {
  const required = pod.nodeAffinity?.required;
  if (!required?.length) return undefined;
  const names = new Set<string>();
  for (const term of required) {
    const lists = (term.matchFields ?? []).filter((f) => f.key === NAME_FIELD && f.operator === "In");
    const [first, ...others] = lists.map((f) => new Set(f.values ?? []));
    if (first === undefined) return undefined;
    for (const name of first) if (others.every((other) => other.has(name))) names.add(name);
  }
  return names;
}

// Only equality or inequality with exactly one name is defined.
function compileField({ key, operator, values }: SelectorRequirement): NodeTest {
  const name = values?.[0];
  if (key !== NAME_FIELD || values?.length !== 1) return never;
  if (operator === "In") return (node) => node.name === name;
  return operator === "NotIn" ? (node) => node.name !== name : never;
}
