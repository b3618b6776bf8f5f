import { type FleetState, MANY_DOMAINS } from "../state/fleet-state.ts";
import { skewOf } from "./admit.ts";
import type { LiveRules } from "./live-rules.ts";
import { deviceWaste, packFit } from "./pack-fit.ts";
import type { Shortlist } from "./shortlist.ts";

// The weights of preferences, compared to a fit of about 0 to 100. An explicit preference outweighs packing, and so
// does separating replicas.
const PREFERENCE = 200;
const INFLUENCE = 200;
const RELUCTANCE = 300;
const SKEW = 200;
const SIBLING = 250;

// Whole steps have the same sum in any order, so the order of the rules does not matter.
const DRAW_STEPS = 2 ** 20;

// A single node should hold at most this fraction of a workload's replicas.
const REPLICAS_SHARE = 8;

/** Computes the part of the pack profile's score that depends on the node alone. */
export function packLocals(state: FleetState, live: LiveRules, { nodes, local, length }: Shortlist): void {
  const table = state.nodes;
  const { demand } = live.podClass;
  const { cpu, memory } = table;
  const devices = table.columns.length > table.firstExtended;
  for (let i = 0; i < length; i++) {
    const node = nodes[i] ?? 0;
    const perCpu = cpu.perUnit[node] ?? 0;
    const perMemory = memory.perUnit[node] ?? 0;
    const cpuFree = (cpu.free[node] ?? 0) * perCpu;
    const memoryFree = (memory.free[node] ?? 0) * perMemory;
    const fit = packFit(cpuFree, memoryFree, demand.cpu * perCpu, demand.memory * perMemory);
    local[i] = devices ? fit - deviceWaste(table, live.podClass, node) : fit;
  }
}

/** Computes the pack profile's totals into `list.totals`. */
export function packTotals(live: LiveRules, list: Shortlist): void {
  const { nodes, totals, local, length } = list;
  const wishes = preferencesOf(live);
  for (let i = 0; i < length; i++) {
    totals[i] = wishes === undefined ? (local[i] ?? 0) : (local[i] ?? 0) + wishes.at(nodes[i] ?? 0);
  }
}

export interface Preferences {
  /** Returns the score of the preferences on a node. */
  readonly at: (node: number) => number;
  /** The highest score of the preferences on nodes that `drawn` doesn't list. */
  readonly most: number;
  /** Returns the nodes in small domains with pods for which the class has affinity. */
  readonly drawn: () => readonly number[];
}

/** Returns all preferences except the fit, or undefined if there are none. */
export function preferencesOf(live: LiveRules): Preferences | undefined {
  const { preference, soft, influences, siblings } = live;
  const reluctance = live.reluctance.nonZero > 0 ? live.reluctance.values : undefined;
  const mostInfluence = strengthOf(live);
  const drawn = mostInfluence > 0;
  if (!preference && !reluctance && !drawn && soft.length === 0 && siblings === undefined) return undefined;
  const mostPreference = Math.max(1, live.podClass.rules.preferenceMax);
  return {
    most: (preference === undefined ? 0 : PREFERENCE) + (attractsWidely(influences) ? INFLUENCE : 0),
    drawn: () => drawnNodes(influences),
    at: (node) => {
      let total = reluctance === undefined ? 0 : -RELUCTANCE * (reluctance[node] ?? 0);
      if (preference !== undefined) total += (PREFERENCE * (preference.values[node] ?? 0)) / mostPreference;
      if (drawn) total += (INFLUENCE * drawOf(influences, node)) / mostInfluence;
      if (soft.length > 0) total -= SKEW * skewExcess(soft, node);
      if (siblings !== undefined) total -= SIBLING * crowding(siblings, node);
      return total;
    },
  };
}

/** Reports whether other pods attract the class to domains that are too large to visit node by node. */
function attractsWidely(influences: LiveRules["influences"]): boolean {
  return influences.some(
    ({ counter, weight }) => weight > 0 && counter.total > 0 && counter.set.topology.count <= MANY_DOMAINS,
  );
}

function drawnNodes(influences: LiveRules["influences"]): number[] {
  const drawn: number[] = [];
  for (const { counter, weight } of influences) {
    if (weight <= 0 || counter.total === 0 || counter.set.topology.count <= MANY_DOMAINS) continue;
    for (const domain of counter.occupied()) {
      for (const node of counter.set.topology.nodesOf(domain)) drawn.push(node);
    }
  }
  return drawn;
}

// Each further pod of a kind weighs less than the one before, so a few matter more than many.
function drawOf(influences: LiveRules["influences"], node: number): number {
  let sum = 0;
  for (let i = 0; i < influences.length; i++) {
    const influence = influences[i];
    const domain = influence?.counter.set.topology.domain[node] ?? -1;
    if (influence === undefined || domain < 0) continue;
    const count = influence.counter.counts[domain] ?? 0;
    if (count > 0) sum += Math.round((influence.weight * count * DRAW_STEPS) / (count + 1));
  }
  return sum / DRAW_STEPS;
}

/** Rules that no bound pod matches don't count; otherwise the result would depend on pods that ran earlier. */
function strengthOf({ influences }: LiveRules): number {
  let sum = 0;
  for (const { counter, weight } of influences) if (counter.total > 0) sum += Math.abs(weight);
  return sum;
}

/** Returns the number of replicas by which the node would exceed the class's spread constraints of every kind. */
export function excessOf(live: LiveRules, node: number): number {
  const { siblings } = live;
  return (
    skewExcess(live.hard, node) +
    skewExcess(live.soft, node) +
    (siblings === undefined ? 0 : crowding(siblings, node))
  );
}

function skewExcess(rules: LiveRules["soft"], node: number): number {
  let excess = 0;
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i];
    if (rule === undefined) continue;
    const domain = rule.topology.domain[node] ?? -1;
    // A node outside all domains counts as one replica too many.
    excess += domain < 0 ? 1 : Math.max(0, skewOf(rule, domain) - rule.maxSkew);
  }
  return excess;
}

/** Returns the number of replicas by which the node and its zone would exceed their fair share of the workload. */
function crowding({ zones, nodes }: NonNullable<LiveRules["siblings"]>, node: number): number {
  const after = nodes.total + 1;
  const onNode = nodes.counts[nodes.set.topology.domain[node] ?? 0] ?? 0;
  const excess = Math.max(0, onNode + 1 - Math.ceil(after / REPLICAS_SHARE));
  const zone = zones.set.topology.domain[node] ?? -1;
  if (zone < 0) return excess;
  const fair = Math.ceil(after / zones.set.count);
  return excess + Math.max(0, (zones.counts[zone] ?? 0) + 1 - fair);
}
