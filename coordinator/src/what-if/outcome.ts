import type { NodePods, WaitingPods, WorkloadOutcome } from "@forage/proto/forage/operator/v1/operator";
import { budgetOf } from "../control/workload/budget.ts";
import { resourceKey } from "../model/keys.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import type { ReadyCounts } from "./ready-counts.ts";

/** The nodes of the pods of all workloads. */
export interface Placement {
  /** The number of pods on each node, by workload key. */
  readonly nodes: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** The pods without a node, by workload key. */
  readonly unbound: ReadonlyMap<string, readonly PodEntry[]>;
}

/**
 * Counts the pods that are not being stopped, by workload and node. Pods of lost nodes are not
 * counted.
 */
export function placementOf(state: ClusterView, lost: ReadonlySet<string> = new Set()): Placement {
  const nodes = new Map<string, Map<string, number>>();
  const unbound = new Map<string, PodEntry[]>();
  for (const pod of state.pods()) {
    const { node, stoppingSince } = pod.record;
    if (stoppingSince !== undefined || lost.has(node)) continue;
    if (node === "") unbound.set(pod.workloadKey, [...(unbound.get(pod.workloadKey) ?? []), pod]);
    else {
      const counts = nodes.get(pod.workloadKey) ?? new Map<string, number>();
      nodes.set(pod.workloadKey, counts.set(node, (counts.get(node) ?? 0) + 1));
    }
  }
  return { nodes, unbound };
}

export interface OutcomeInput {
  readonly before: Placement;
  readonly after: Placement;
  readonly ready: ReadyCounts;
  /** The final state of the copy. */
  readonly state: ClusterView;
  readonly whyUnplaced: (pod: PodEntry) => string;
}

/** Returns an outcome for each workload with a change, by key. */
export function workloadOutcomes(input: OutcomeInput): WorkloadOutcome[] {
  const { before, after, ready } = input;
  const keys = new Set([
    ...ready.keys(),
    ...before.nodes.keys(),
    ...after.nodes.keys(),
    ...after.unbound.keys(),
  ]);
  return [...keys].sort().flatMap((key) => outcomeOf(key, input) ?? []);
}

function outcomeOf(key: string, input: OutcomeInput): WorkloadOutcome | undefined {
  const { before, after, ready, state } = input;
  const { namespace, kind, name } = splitWorkloadKey(key);
  const { left, came } = movesBetween(before.nodes.get(key), after.nodes.get(key));
  const alreadyWaiting = before.unbound.get(key)?.length ?? 0;
  const waiting = waitingOf(after.unbound.get(key) ?? [], alreadyWaiting, input.whyUnplaced);
  const counts = {
    readyBefore: ready.before(key),
    readyLowest: ready.lowest(key),
    readyAfter: ready.now(key),
  };
  const dips = counts.readyLowest < counts.readyBefore;
  if (left.length + came.length + waiting.length === 0 && !dips) return undefined;
  const workload = state.resource(resourceKey(namespace, kind, name))?.workload;
  const minimum = workload === undefined ? undefined : budgetOf(workload).needed;
  return { namespace, kind, name, ...counts, minimum, left, came, waiting };
}

/**
 * Reports whether no pod with a node waits at the end, and no workload falls below a minimum that
 * it meets now.
 */
export function isSafe(outcomes: readonly WorkloadOutcome[]): boolean {
  return outcomes.every((outcome) => !isShort(outcome) && newlyWaiting(outcome) === 0);
}

/** Reports whether the workload falls below its minimum, and lower than it is now. */
export function isShort({
  readyBefore,
  readyLowest,
  minimum = 0,
}: Pick<WorkloadOutcome, "readyBefore" | "readyLowest" | "minimum">): boolean {
  return readyLowest < Math.min(minimum, readyBefore);
}

/** Returns how many pods with a node wait at the end. */
export function newlyWaiting({ waiting }: WorkloadOutcome): number {
  return waiting.reduce((sum, { pods, already }) => sum + pods - already, 0);
}

function movesBetween(
  before: ReadonlyMap<string, number> = new Map(),
  after: ReadonlyMap<string, number> = new Map(),
): { readonly left: NodePods[]; readonly came: NodePods[] } {
  const left: NodePods[] = [];
  const came: NodePods[] = [];
  for (const node of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const gain = (after.get(node) ?? 0) - (before.get(node) ?? 0);
    if (gain < 0) left.push({ node, pods: -gain });
    if (gain > 0) came.push({ node, pods: gain });
  }
  return { left, came };
}

function waitingOf(
  pods: readonly PodEntry[],
  alreadyWaiting: number,
  whyUnplaced: (pod: PodEntry) => string,
): WaitingPods[] {
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const why = whyUnplaced(pod);
    counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  let known = alreadyWaiting;
  return [...counts].map(([why, count]) => {
    const already = Math.min(known, count);
    known -= already;
    return { pods: count, why, already };
  });
}
