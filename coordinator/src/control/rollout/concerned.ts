import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry, RolloutEntry } from "../../state/entries.ts";

type State = Pick<ClusterView, "activeRollouts" | "activeRolloutsOf" | "servicesTargeting">;

/** A resource of a namespace. */
export interface Target {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/**
 * Called with the id of each rollout whose progress may have changed, and with its resource to evaluate again: "all"
 * resources, or "none" if only stored states have changed.
 */
export type VisitRollout = (id: string, outdated: Target | "all" | "none") => void;

/** Visits the active rollouts that a change of the view affects. A rollout may be visited several times. */
export function visitAffected(change: Change, state: State, visit: VisitRollout): void {
  switch (change.type) {
    case "pod": {
      const pod = change.after ?? change.before;
      if (pod !== undefined) visitRolloutsOfPod(pod, state, visit);
      return;
    }
    case "resource": {
      const record = (change.after ?? change.before)?.record;
      if (record !== undefined) visitRolloutsOf(record, state, visit);
      return;
    }
    case "workload-status": {
      const record = (change.after ?? change.before)?.record;
      // A service may have waited for the end of its target's rollout attempt.
      if (record !== undefined) visitRolloutsOfWorkload(record, state, visit);
      return;
    }
    case "rollout":
      if (change.after !== undefined) visitSuperseded(change.before, change.after, state, visit);
      return;
    case "node":
      if (change.before?.health.ready !== change.after?.health.ready)
        for (const { id } of state.activeRollouts()) visit(id, "all");
      return;
    // Effects of objects on workloads arrive as changes of the workloads.
    case "object":
    case "kept-pod":
    case "revision":
    case "scale":
    case "service-address":
    case "api-token":
    case "namespace":
      return;
    default:
      change satisfies never;
  }
}

/** Visits the rollouts of the pod's workload, and of the services that select it. */
export function visitRolloutsOfPod({ record }: PodEntry, state: State, visit: VisitRollout): void {
  const { namespace, workloadKind: kind, workloadName: name } = record;
  visitRolloutsOfWorkload({ namespace, kind, name }, state, visit);
}

/** Visits the rollouts that contain the resource. */
export function visitRolloutsOf({ namespace, kind, name }: Target, state: State, visit: VisitRollout): void {
  for (const { id } of state.activeRolloutsOf(namespace, kind, name)) visit(id, { namespace, kind, name });
}

function visitRolloutsOfWorkload(workload: Target, state: State, visit: VisitRollout): void {
  const { namespace, kind, name } = workload;
  visitRolloutsOf(workload, state, visit);
  for (const { record } of state.servicesTargeting(workloadKey(namespace, kind, name)))
    visitRolloutsOf({ namespace: record.namespace, kind: "service", name: record.name }, state, visit);
}

/**
 * Visits the rollout. If it is new, also visits the rollouts that it may supersede because they contain the same resources.
 */
function visitSuperseded(
  before: RolloutEntry | undefined,
  { id, record }: RolloutEntry,
  state: State,
  visit: VisitRollout,
): void {
  visit(id, "none");
  if (record.finished || before !== undefined) return;
  const { namespace } = record;
  for (const { kind, name } of record.resources) visitRolloutsOf({ namespace, kind, name }, state, visit);
}
