import type { WorkloadShort } from "@forage/proto/forage/operator/v1/operator";
import { budgetOf } from "../control/workload/budget.ts";
import { isReady } from "../endpoints/readiness.ts";
import { resourceKey } from "../model/keys.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { serves } from "../state/serves.ts";
import { isShort } from "./outcome.ts";

/** Counts the ready pods of container services, in total and by node. */
export class ServiceCounts {
  readonly #state: ClusterView;
  readonly #ready = new Map<string, number>();
  /** Counts by node, then by workload. */
  readonly #onNode = new Map<string, Map<string, number>>();

  constructor(state: ClusterView) {
    this.#state = state;
    const nodeServes = (name: string): boolean => serves(state.node(name));
    for (const pod of state.pods()) {
      if (splitWorkloadKey(pod.workloadKey).kind !== "container_service" || !isReady(pod, nodeServes))
        continue;
      const { node } = pod.record;
      const onNode = this.#onNode.get(node) ?? new Map<string, number>();
      this.#onNode.set(node, onNode.set(pod.workloadKey, (onNode.get(pod.workloadKey) ?? 0) + 1));
      this.#ready.set(pod.workloadKey, (this.#ready.get(pod.workloadKey) ?? 0) + 1);
    }
  }

  /**
   * Returns the services that fall below their minimum, and lower than they are now, at the moment
   * of the node's loss.
   */
  shortWithout(node: string): WorkloadShort[] {
    return [...(this.#onNode.get(node) ?? [])]
      .map(([key, count]) => this.#without(key, count))
      .filter(isShort)
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  }

  #without(key: string, count: number): WorkloadShort {
    const { namespace, kind, name } = splitWorkloadKey(key);
    const readyBefore = this.#ready.get(key) ?? 0;
    const workload = this.#state.resource(resourceKey(namespace, kind, name))?.workload;
    const minimum = workload === undefined ? 0 : budgetOf(workload).needed;
    return { namespace, kind, name, readyBefore, readyLowest: readyBefore - count, minimum };
  }
}

function nameOf({ namespace, kind, name }: WorkloadShort): string {
  return `${namespace}/${kind}/${name}`;
}
