import { admits, fits, hasPartners, portsTaken, spreads } from "../place/admit.ts";
import type { LiveRules } from "../place/live-rules.ts";
import type { Demand } from "../pod/demand.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { NodeTable } from "../state/node-table.ts";
import type { DisruptionBudget } from "../types.ts";
import { compileBudget, type LiveBudget } from "./budgets.ts";
import { Trial } from "./trial.ts";

/** Pods to preempt on one node. */
export interface Candidate {
  readonly node: number;
  /**
   * The victims: first those whose preemption violates a budget, then the rest; each part by falling priority, then by
   * age.
   */
  readonly victims: readonly number[];
  /** The number of victims that violate a budget. */
  readonly violations: number;
}

const PRIORITY_SPAN = 2 ** 31;

/** Returns every node where preempting pods of lower priority makes room for the class. */
export function candidates(
  state: FleetState,
  live: LiveRules,
  budgets: readonly DisruptionBudget[],
): Candidate[] {
  const found: Candidate[] = [];
  search(state, live, budgets, (candidate) => {
    found.push(candidate);
    return Number.POSITIVE_INFINITY;
  });
  return found;
}

/** Returns the candidates that no rule ranks below another, without computing worse ones. */
export function bestCandidates(
  state: FleetState,
  live: LiveRules,
  budgets: readonly DisruptionBudget[],
  violationsMost: number,
): Candidate[] {
  let left: Candidate[] = [];
  let least: readonly number[] | undefined;
  search(state, live, budgets, (candidate) => {
    if (candidate.violations <= violationsMost) {
      const cost = costOf(state, candidate);
      const order = least === undefined ? -1 : compare(cost, least);
      if (order < 0) left = [];
      if (order <= 0) left.push(candidate);
      if (order < 0) least = cost;
    }
    return least?.[0] === 0 ? (least[1] ?? 0) : Number.POSITIVE_INFINITY;
  });
  return left;
}

/** Returns the candidates that no rule ranks below another. */
export function best(state: FleetState, all: readonly Candidate[]): Candidate[] {
  const costs = all.map((candidate) => costOf(state, candidate));
  const least = costs.reduce<readonly number[] | undefined>(
    (a, b) => (a === undefined || compare(b, a) < 0 ? b : a),
    undefined,
  );
  return all.filter((_, i) => least !== undefined && compare(costs[i] ?? [], least) === 0);
}

/**
 * Searches for candidates. `found` returns the highest priority of victims up to which further candidates are worth
 * computing.
 */
function search(
  state: FleetState,
  live: LiveRules,
  budgets: readonly DisruptionBudget[],
  found: (candidate: Candidate) => number,
): void {
  if (!live.podClass.preempts) return;
  const compiled = budgets.map(compileBudget);
  const trial = new Trial(state, live);
  let importanceMost = Number.POSITIVE_INFINITY;
  const lower: number[] = [];
  for (let node = 0; node < state.nodes.end; node++) {
    if (live.admitted.bits[node] !== 1) continue;
    lessImportant(state, live, node, lower);
    if (lower.length === 0 || !couldFit(state, live, node, lower) || !isResolvable(state, live, node))
      continue;
    const candidate = tryNode(state, trial, node, lower, compiled, importanceMost);
    if (candidate !== undefined) importanceMost = found(candidate);
  }
}

/**
 * Returns the costs in order of weight: budget violations, the most important victim, the sum of the victims'
 * importance, their number, and how long the most important ones have run.
 */
function costOf(state: FleetState, { victims, violations }: Candidate): number[] {
  let highest = -PRIORITY_SPAN;
  let sum = 0;
  let first = Number.POSITIVE_INFINITY;
  for (const pod of victims) {
    const { priority } = state.pods.classOf(pod);
    if (priority > highest) first = Number.POSITIVE_INFINITY;
    highest = Math.max(highest, priority);
    if (priority === highest) first = Math.min(first, startOf(state, pod));
    sum += priority + PRIORITY_SPAN;
  }
  return [violations, highest, sum, victims.length, -first];
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function startOf(state: FleetState, pod: number): number {
  return state.pods.start[pod] ?? 0;
}

/**
 * Fills `lower` with the pods of lower priority, by falling priority, then by age. In this order they are added again
 * if there is room.
 */
function lessImportant(state: FleetState, live: LiveRules, node: number, lower: number[]): void {
  const { pods, nodes } = state;
  const { priority } = live.podClass;
  lower.length = 0;
  for (let pod = nodes.firstPod[node] ?? -1; pod >= 0; pod = pods.nextOnNode[pod] ?? -1) {
    const own = pods.classes[pod]?.priority ?? 0;
    if (own >= priority) continue;
    // A node has few pods, nearly in order, so insertion is faster than a sort with its calls.
    let at = lower.length;
    for (; at > 0; at--) {
      const other = lower[at - 1] ?? 0;
      const ahead = own - (pods.classes[other]?.priority ?? 0) || startOf(state, other) - startOf(state, pod);
      if (ahead < 0) break;
      lower[at] = other;
    }
    lower[at] = pod;
  }
}

/** Reports whether the resources would fit without any of these pods. A cheap check that excludes most nodes. */
function couldFit(state: FleetState, live: LiveRules, node: number, lower: readonly number[]): boolean {
  const { nodes, pods } = state;
  const { demand } = live.podClass;
  let cpu = nodes.cpu.free[node] ?? 0;
  let memory = nodes.memory.free[node] ?? 0;
  for (const pod of lower) {
    cpu += pods.classes[pod]?.demand.cpu ?? 0;
    memory += pods.classes[pod]?.demand.memory ?? 0;
  }
  return (demand.cpu === 0 || demand.cpu <= cpu) && (demand.memory === 0 || demand.memory <= memory);
}

/**
 * Reports whether fewer pods would remove the first obstacle. An obstacle in the node's own specification would remain.
 */
function isResolvable(state: FleetState, live: LiveRules, node: number): boolean {
  const { nodes } = state;
  const { demand } = live.podClass;
  if (demand.ports.length > 0 && portsTaken(nodes, demand, node)) return true;
  if (!fits(nodes, demand, node)) return !exceeds(nodes, demand, node);
  for (const rule of live.hard) if (!spreads(rule, node)) return (rule.topology.domain[node] ?? -1) >= 0;
  if (live.affinity.length > 0 && !hasPartners(live, node)) return false;
  return !admits(live, node);
}

/** Reports whether the pod requests more than the node's total capacity. */
function exceeds(table: NodeTable, { cpu, memory, storage, extended }: Demand, node: number): boolean {
  if (cpu > (table.cpu.allocatable[node] ?? 0) || memory > (table.memory.allocatable[node] ?? 0)) return true;
  if (storage > (table.storage.allocatable[node] ?? 0)) return true;
  return extended.some(
    ({ resource, amount }) => amount > (table.columns[resource.column]?.allocatable[node] ?? 0),
  );
}

/**
 * Tries to preempt on the node. Returns undefined if that can't help, or only with a victim more important than
 * `importanceMost`.
 */
function tryNode(
  state: FleetState,
  trial: Trial,
  node: number,
  lower: readonly number[],
  budgets: readonly LiveBudget[],
  importanceMost: number,
): Candidate | undefined {
  trial.start(node, lower);
  const against = breaking(state, lower, budgets);
  const order =
    against === undefined
      ? lower
      : [...lower.filter((p) => against.has(p)), ...lower.filter((p) => !against.has(p))];
  const victims: number[] = [];
  let kept = 0;
  let violations = 0;
  if (trial.admitted()) {
    for (; kept < order.length; kept++) {
      const pod = order[kept] ?? 0;
      trial.restore(pod);
      if (trial.admitted()) continue;
      trial.remove(pod);
      victims.push(pod);
      if (against?.has(pod)) violations++;
      if (state.pods.classOf(pod).priority > importanceMost) {
        kept++;
        break;
      }
    }
  }
  trial.end(victims);
  for (let i = kept; i < order.length; i++) trial.restore(order[i] ?? 0);
  return kept === order.length ? { node, victims, violations } : undefined;
}

/** Returns the victims that exceed their budget, counted by importance. */
function breaking(
  state: FleetState,
  lower: readonly number[],
  budgets: readonly LiveBudget[],
): Set<number> | undefined {
  if (budgets.length === 0) return undefined;
  const against = new Set<number>();
  const left = budgets.map((budget) => budget.allowed);
  for (const pod of lower) {
    const { identity } = state.pods.classOf(pod);
    for (const [i, budget] of budgets.entries()) {
      if (!budget.matcher.test(identity)) continue;
      left[i] = (left[i] ?? 0) - 1;
      if ((left[i] ?? 0) < 0) against.add(pod);
    }
  }
  return against;
}
