import type { NodeSelectorTerm, NodeSpec, PodSpec, SelectorRequirement } from "../types.ts";
import { compileRequirement } from "./requirement.ts";

export type NodeTest = (node: NodeSpec) => boolean;

const NAME_FIELD = "metadata.name";

const never: NodeTest = () => false;

/** Compiles node selector and required node affinity together. Undefined when the pod has neither. */
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
  /** The same for all nodes that fail by it. */
  readonly reason: string;
  readonly detail: string;
}

/** Returns the first demand that the node doesn't meet; undefined when it meets all. */
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

/** A test of one term; undefined when it doesn't parse, which a required term answers with no and a preferred one with an error. */
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
 * The names the node must be one of, when each required term names some; undefined when any name may do.
 * An empty set: the terms contradict themselves, so no node can do.
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

// The field must be equal to exactly one name, or differ from exactly one: nothing else is defined.
function compileField({ key, operator, values }: SelectorRequirement): NodeTest {
  const name = values?.[0];
  if (key !== NAME_FIELD || values?.length !== 1) return never;
  if (operator === "In") return (node) => node.name === name;
  return operator === "NotIn" ? (node) => node.name !== name : never;
}
