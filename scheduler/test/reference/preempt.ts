import { podKey } from "../../src/pod/pod-key.ts";
import type { DisruptionBudget, NodeSpec, PodSpec } from "../../src/types.ts";
import { type Bound, type Cluster, reject } from "./filter.ts";
import { labelsMatch } from "./match.ts";

export interface Candidate {
  readonly node: string;
  readonly victims: readonly Bound[];
  readonly violations: number;
}

const priority = (pod: PodSpec) => pod.priority ?? 0;

/** Returns every node where preempting pods of lower priority makes room, with the victims. */
export function candidates(
  pod: PodSpec,
  cluster: Cluster,
  budgets: readonly DisruptionBudget[] = [],
): Candidate[] {
  if (pod.preemptionPolicy === "Never") return [];
  return cluster.nodes.flatMap((node) => {
    if (reject(pod, node, cluster)?.resolvable !== true) return [];
    return victimsOn(node, pod, cluster, budgets) ?? [];
  });
}

function victimsOn(
  node: NodeSpec,
  pod: PodSpec,
  cluster: Cluster,
  budgets: readonly DisruptionBudget[],
): Candidate | undefined {
  const lower = cluster.bound
    .filter((b) => b.node.name === node.name && priority(b.pod) < priority(pod))
    .sort((a, b) => priority(b.pod) - priority(a.pod) || a.start - b.start);
  let kept: Cluster = { nodes: cluster.nodes, bound: cluster.bound.filter((b) => !lower.includes(b)) };
  if (lower.length === 0 || reject(pod, node, kept) !== undefined) return undefined;
  const left = budgets.map((b) => b.disruptionsAllowed);
  const violating = new Set<Bound>();
  for (const b of lower) {
    for (const [i, budget] of budgets.entries()) {
      if (budget.namespace !== b.pod.namespace || !labelsMatch(budget.selector, b.pod.labels ?? {})) continue;
      left[i] = (left[i] ?? 0) - 1;
      if ((left[i] ?? 0) < 0) violating.add(b);
    }
  }
  const victims: Bound[] = [];
  for (const b of [...lower.filter((v) => violating.has(v)), ...lower.filter((v) => !violating.has(v))]) {
    const trial = { nodes: kept.nodes, bound: [...kept.bound, b] };
    if (reject(pod, node, trial) === undefined) kept = trial;
    else victims.push(b);
  }
  return { node: node.name, victims, violations: victims.filter((b) => violating.has(b)).length };
}

/** Returns the candidates that no rule ranks below another. */
export function best(all: readonly Candidate[]): Candidate[] {
  const highest = (c: Candidate) => Math.max(...c.victims.map((b) => priority(b.pod)));
  const rules: ((c: Candidate) => number)[] = [
    (c) => c.violations,
    highest,
    (c) => c.victims.reduce((sum, b) => sum + priority(b.pod) + 2 ** 31, 0),
    (c) => c.victims.length,
    (c) => -Math.min(...c.victims.filter((b) => priority(b.pod) === highest(c)).map((b) => b.start)),
  ];
  let left = [...all];
  for (const rule of rules) {
    const least = Math.min(...left.map(rule));
    left = left.filter((c) => rule(c) === least);
  }
  return left;
}

export function victimKeys(candidate: Candidate): string[] {
  return candidate.victims.map((b) => podKey(b.pod));
}
