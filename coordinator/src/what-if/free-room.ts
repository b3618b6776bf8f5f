import { parseAmount } from "@forage/scheduler";
import { usesNothing } from "../control/job/pod-state.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodShapes } from "./pod-shapes.ts";

/**
 * The amounts on each node that bound pods leave free. They are negative on an overcommitted node.
 */
export class FreeRoom {
  readonly #free = new Map<string, ReadonlyMap<string, number>>();

  constructor(state: ClusterView, shapes: PodShapes) {
    for (const { name, report } of state.nodes()) {
      const free = new Map<string, number>();
      for (const [resource, text] of Object.entries(report?.report?.allocatable ?? {}))
        free.set(resource, amountOf(resource, text));
      for (const pod of state.podsOnNode(name)) {
        if (usesNothing(pod)) continue;
        for (const [resource, amount] of shapes.of(pod).requests)
          free.set(resource, (free.get(resource) ?? 0) - amount);
      }
      this.#free.set(name, free);
    }
  }

  /** Returns how many pods with these requests fit on the node. */
  slots(node: string, requests: ReadonlyMap<string, number>): number {
    const free = this.#free.get(node);
    let slots = Number.MAX_SAFE_INTEGER;
    for (const [resource, amount] of requests)
      if (amount > 0) slots = Math.min(slots, Math.floor((free?.get(resource) ?? 0) / amount));
    return Math.max(0, slots);
  }
}

function amountOf(resource: string, text: string): number {
  try {
    return parseAmount(resource, text);
  } catch {
    // Such a node accepts no pods.
    return 0;
  }
}
