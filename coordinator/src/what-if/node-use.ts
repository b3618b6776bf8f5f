import type { ResourceOutcome } from "@forage/proto/forage/operator/v1/operator";
import { formatMilliCpu, parseAmount, podRequests } from "@forage/scheduler";
import { usesNothing } from "../control/job/pod-state.ts";
import { podSpecOf } from "../model/pod-spec.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";

/** Amounts by resource in the scheduler's units: thousandths for cpu, otherwise whole units. */
export type Amounts = Map<string, number>;

export interface NodeUse {
  readonly requested: Amounts;
  readonly allocatable: Amounts;
}

/** Reports whether new pods may be placed on the node. */
export function acceptsPods({ health, record }: NodeEntry): boolean {
  return health.ready && !record.unschedulable;
}

/** Returns the allocatable and the requested amounts of a node. Unparsable amounts are ignored. */
export function useOf(node: NodeEntry, state: ClusterView): NodeUse {
  const allocatable: Amounts = new Map();
  for (const [resource, text] of Object.entries(node.report?.report?.allocatable ?? {})) {
    const amount = attempt(() => parseAmount(resource, text));
    if (amount !== undefined) allocatable.set(resource, amount);
  }
  const requested: Amounts = new Map();
  for (const pod of state.podsOnNode(node.name)) addRequests(pod, requested);
  return { requested, allocatable };
}

/** Sums the use of all nodes that accept pods. */
export function totalUse(state: ClusterView): NodeUse {
  const requested: Amounts = new Map();
  const allocatable: Amounts = new Map();
  for (const node of state.nodes()) {
    if (!acceptsPods(node)) continue;
    const use = useOf(node, state);
    for (const [resource, amount] of use.requested) add(requested, resource, amount);
    for (const [resource, amount] of use.allocatable) add(allocatable, resource, amount);
  }
  return { requested, allocatable };
}

const FIRST = ["cpu", "memory", "pods"];

/** Compares two totals, resource by resource. */
export function resourceOutcomes(before: NodeUse, after: NodeUse): ResourceOutcome[] {
  const names = new Set([...FIRST, ...[...before.allocatable.keys(), ...after.allocatable.keys()].sort()]);
  return [...names].map((resource) => {
    const amounts = {
      requestedBefore: amountText(resource, before.requested.get(resource)),
      allocatableBefore: amountText(resource, before.allocatable.get(resource)),
      requestedAfter: amountText(resource, after.requested.get(resource)),
      allocatableAfter: amountText(resource, after.allocatable.get(resource)),
    };
    const percents = { percentBefore: percentOf(before, resource), percentAfter: percentOf(after, resource) };
    return { resource, ...amounts, ...percents };
  });
}

/** Formats an amount as an exact quantity. */
export function amountText(resource: string, amount = 0): string {
  return resource === "cpu" ? formatMilliCpu(amount) : String(amount);
}

function addRequests(pod: PodEntry, requested: Amounts): void {
  if (usesNothing(pod)) return;
  add(requested, "pods", 1);
  const amounts = attempt(() => podRequests(podSpecOf(pod.record)));
  for (const [resource, amount] of amounts ?? []) add(requested, resource, amount);
}

function add(to: Amounts, resource: string, amount: number): void {
  to.set(resource, (to.get(resource) ?? 0) + amount);
}

function percentOf({ requested, allocatable }: NodeUse, resource: string): number | undefined {
  const all = allocatable.get(resource) ?? 0;
  return all === 0 ? undefined : ((requested.get(resource) ?? 0) / all) * 100;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
