import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, RolloutEntry } from "../../state/entries.ts";

type State = Pick<ClusterView, "activeRollouts" | "activeRolloutsOf" | "servicesTargeting">;

/** Returns the ids of the rollouts whose progress may change with these changes of the view. */
export function concernedRollouts(changes: readonly Change[], state: State): ReadonlySet<string> {
  return new Set(changes.flatMap((change) => concernedBy(change, state)));
}

/** Returns the rollouts of the workload, and of the services that lead to it. */
function rolloutsOfWorkload(
  { namespace, kind, name }: { readonly namespace: string; readonly kind: string; readonly name: string },
  state: State,
): readonly string[] {
  const services = state.servicesTargeting(workloadKey(namespace, kind, name));
  return [
    ...rolloutsOf(namespace, kind, name, state),
    ...services.flatMap((service) => rolloutsOf(namespace, "service", service.record.name, state)),
  ];
}

function concernedBy(change: Change, state: State): readonly string[] {
  switch (change.kind) {
    case "pod": {
      const record = (change.after ?? change.before)?.record;
      if (record === undefined) return [];
      const { namespace, workloadKind: kind, workloadName: name } = record;
      return rolloutsOfWorkload({ namespace, kind, name }, state);
    }
    case "resource": {
      const record = (change.after ?? change.before)?.record;
      return record === undefined ? [] : rolloutsOf(record.namespace, record.kind, record.name, state);
    }
    case "workload-status": {
      const record = (change.after ?? change.before)?.record;
      return record === undefined ? [] : rolloutsOfWorkload(record, state);
    }
    case "rollout":
      return change.after === undefined ? [] : supersededBy(change.after, state);
    case "node":
      if (change.before?.health.ready === change.after?.health.ready) return [];
      return state.activeRollouts().map(({ id }) => id);
    // Its effects on workloads arrive as changes of the workloads.
    case "object":
    case "kept-pod":
    case "revision":
    case "scale":
    case "service-address":
    case "api-token":
    case "namespace":
      return [];
    default:
      return change satisfies never;
  }
}

/** Returns the rollout and those that it may supersede because they name the same resources. */
function supersededBy({ id, record }: RolloutEntry, state: State): readonly string[] {
  if (record.finished) return [id];
  return [
    id,
    ...record.resources.flatMap(({ kind, name }) => rolloutsOf(record.namespace, kind, name, state)),
  ];
}

function rolloutsOf(namespace: string, kind: string, name: string, state: State): readonly string[] {
  return state.activeRolloutsOf(namespace, kind, name).map(({ id }) => id);
}
