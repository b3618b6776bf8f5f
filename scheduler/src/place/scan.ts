import type { FleetState } from "../state/fleet-state.ts";
import { admits, fits, hasRulesAboutPods } from "./admit.ts";
import type { LiveRules } from "./live-rules.ts";
import type { Shortlist } from "./shortlist.ts";

/** Lists every feasible node. */
export function scan(state: FleetState, live: LiveRules, list: Shortlist): void {
  const { nodes } = state;
  const { demand } = live.podClass;
  const { bits } = live.admitted;
  const { podsFree, end } = nodes;
  const cpu = nodes.cpu.free;
  const memory = nodes.memory.free;
  // If nothing is requested, the node may even be overcommitted.
  const needCpu = demand.cpu > 0 ? demand.cpu : Number.NEGATIVE_INFINITY;
  const needMemory = demand.memory > 0 ? demand.memory : Number.NEGATIVE_INFINITY;
  const more = demand.storage > 0 || demand.extended.length > 0 || demand.ports.length > 0;
  const others = hasRulesAboutPods(live);
  list.reserve(end);
  list.population.fill(1, 0, end);
  const listed = list.nodes;
  let length = 0;
  for (let node = 0; node < end; node++) {
    if (bits[node] !== 1 || (podsFree[node] ?? 0) <= 0) continue;
    if ((cpu[node] ?? 0) < needCpu || (memory[node] ?? 0) < needMemory) continue;
    if (more && !fits(nodes, demand, node)) continue;
    if (others && !admits(live, node)) continue;
    listed[length++] = node;
  }
  list.length = length;
}

/** Returns the listed node with the highest total, with ties broken by name, or -1 if none is listed. */
export function best(state: FleetState, { nodes, totals, length }: Shortlist): number {
  const { tieBreakers } = state.nodes;
  let chosen = -1;
  let most = Number.NEGATIVE_INFINITY;
  let least = 0;
  for (let i = 0; i < length; i++) {
    const total = totals[i] ?? 0;
    if (total < most) continue;
    const node = nodes[i] ?? 0;
    const rank = tieBreakers[node] ?? 0;
    if (total === most && (rank > least || (rank === least && !state.nodes.precedes(node, chosen)))) continue;
    chosen = node;
    most = total;
    least = rank;
  }
  return chosen;
}
