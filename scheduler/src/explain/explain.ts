import { admits, fits } from "../place/admit.ts";
import type { LiveRules } from "../place/live-rules.ts";
import { formatAmount } from "../quantity/format-quantity.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { Explanation, PodKey } from "../types.ts";
import { Rejecter, type Rejection, type Shortage, shortagesOn } from "./reject.ts";

/** Evaluates every node, and summarizes the results. */
export function explain(state: FleetState, live: LiveRules, pod: PodKey): Explanation {
  const rejecter = new Rejecter(state, live);
  const feasible: string[] = [];
  const rejections: Rejection[] = [];
  const nearest = new Nearest(state, live);
  for (const node of state.nodes.indexOf.values()) {
    const rejection = rejecter.reject(node);
    if (rejection === undefined) {
      feasible.push(state.nodes.name(node));
    } else {
      rejections.push(rejection);
      nearest.consider(node, rejection);
    }
  }
  feasible.sort();
  rejections.sort((a, b) => (a.node < b.node ? -1 : 1));
  const reasons = summarise(rejections);
  const head = `${feasible.length}/${state.nodes.count} nodes`;
  const counted = reasons.map(({ nodes, reason, detail }) => `${nodes} ${reason}${detail && ` (${detail})`}`);
  const change = feasible.length === 0 ? nearest.change : undefined;
  return {
    pod,
    nodes: state.nodes.count,
    feasible,
    rejections: rejections.map(({ shortages: _, ...rejection }) => rejection),
    reasons,
    ...(change === undefined ? {} : { nearest: change }),
    summary: counted.length === 0 ? head : `${head}: ${counted.join(", ")}`,
  };
}

function summarise(rejections: readonly Rejection[]): Explanation["reasons"] {
  const byReason = new Map<string, { nodes: number; largest: Shortage[] }>();
  for (const { reason, shortages = [] } of rejections) {
    const entry = byReason.get(reason);
    if (entry === undefined) {
      byReason.set(reason, { nodes: 1, largest: [...shortages] });
      continue;
    }
    entry.nodes++;
    // Nodes with the same reason lack the same resources, in the same order.
    for (const [index, shortage] of shortages.entries())
      if (shortage.free > (entry.largest[index]?.free ?? 0)) entry.largest[index] = shortage;
  }
  return [...byReason]
    .map(([reason, { nodes, largest }]) => ({ reason, nodes, detail: detailOf(largest) }))
    .sort((a, b) => b.nodes - a.nodes || (a.reason < b.reason ? -1 : 1));
}

/** Describes the figures of each short resource, with names if there are several. */
function detailOf(shortages: readonly Shortage[]): string {
  return shortages
    .filter(({ resource }) => resource !== "pods")
    .map(({ resource, needs, free }) => {
      const figures = `needs ${formatAmount(resource, needs)}, largest free ${formatAmount(resource, Math.max(0, free))}`;
      return shortages.length === 1 ? figures : `${resource} ${figures}`;
    })
    .join("; ");
}

// A shortage that no pod's removal would end. It costs more than most changes of rules.
const ADDING_COST = 6;

/** Finds the smallest sufficient change among nodes with a single obstacle. */
class Nearest {
  change: string | undefined;
  #cost = Number.POSITIVE_INFINITY;
  readonly #state: FleetState;
  readonly #live: LiveRules;

  constructor(state: FleetState, live: LiveRules) {
    this.#state = state;
    this.#live = live;
  }

  consider(node: number, rejection: Rejection): void {
    const { filter } = rejection;
    const live = this.#live;
    if (filter === "NodeResourcesFit") {
      if (live.admitted.bits[node] === 1 && admits(live, node)) this.#considerRoom(node, rejection);
      return;
    }
    const bySpec = live.admitted.bits[node] !== 1;
    const rest = bySpec ? fits(this.#state.nodes, live.podClass.demand, node) && admits(live, node) : true;
    if (!rest) return;
    // These rank after shortages, whose cost is below 1: a change that is usually easier ranks higher.
    const [cost, change] = changeFor(filter, rejection);
    this.#offer(cost, change);
  }

  #considerRoom(node: number, { node: name, resolvable }: Rejection): void {
    const shortages = shortagesOn(this.#state, this.#live, node);
    let cost = resolvable ? 0 : ADDING_COST;
    for (const { needs, free } of shortages) cost += (needs - free) / needs / (shortages.length + 1);
    if (cost >= this.#cost) return;
    const lacks = shortages.map(
      ({ resource, needs, free }) => `${formatAmount(resource, needs - free)} ${resource}`,
    );
    const all = lacks.join(" and ");
    this.#offer(cost, resolvable ? `free ${all} on ${name}` : `add ${all} to ${name}, or ask for less`);
  }

  #offer(cost: number, change: string): void {
    if (cost >= this.#cost) return;
    this.#cost = cost;
    this.change = change;
  }
}

function changeFor(filter: Rejection["filter"], { node, reason }: Rejection): [number, string] {
  switch (filter) {
    case "NodeUnschedulable":
      return [1, `make ${node} schedulable`];
    case "TaintToleration":
      return [2, `tolerate ${reason}`];
    case "NodePorts":
      return [3, `free ${reason.replace(" taken", "")} on ${node}`];
    case "PodTopologySpread":
      return [4, `raise maxSkew, or make room in a domain with fewer replicas (${reason})`];
    case "InterPodAffinity":
      return [5, `relax the affinity, or move the pods it concerns (${node}: ${reason})`];
    case "NodeAffinity":
    case "NodeName":
      return [7, `relax the node selector or affinity (${node} has room)`];
    case "RuntimeClass":
      return [8, `offer the runtime class on ${node}`];
    case "VolumeBinding":
      return [9, `move the volume claims to ${node}`];
    case "NodeResourcesFit":
      return [10, `make room on ${node}`];
  }
}
