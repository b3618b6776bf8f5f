import type { PodClass } from "../pod/pod-class.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { LiveRules } from "./live-rules.ts";
import type { Shortlist } from "./shortlist.ts";

const MAX = 100;
const TAINT_WEIGHT = 3;
const PREFERENCE_WEIGHT = 2;
const SPREAD_WEIGHT = 2;
const INFLUENCE_WEIGHT = 2;

const MIB = 1024 * 1024;
// Below the first size images don't count. From the second size on, for each container, the score is at its maximum.
const IMAGE_LEAST_BYTES = 23 * MIB;
const IMAGE_MOST_BYTES = 1024 * MIB;

/** Computes NodeResourcesFit, NodeResourcesBalancedAllocation and ImageLocality, which depend on the node alone. */
export function kubeLocals(
  state: FleetState,
  { demand, rules }: PodClass,
  list: Shortlist,
  most: boolean,
): void {
  const { defaultedCpu, defaultedMemory } = state.nodes;
  const { allocatable: cpus, free: cpusFree } = state.nodes.cpu;
  const { allocatable: memories, free: memoriesFree } = state.nodes.memory;
  const { nodes, local, length } = list;
  const { cpu, memory } = demand;
  const balanced = cpu > 0 || memory > 0;
  for (let i = 0; i < length; i++) {
    const node = nodes[i] ?? 0;
    const capCpu = cpus[node] ?? 0;
    const capMemory = memories[node] ?? 0;
    const usedCpu = (defaultedCpu[node] ?? 0) + demand.defaultedCpu;
    const usedMemory = (defaultedMemory[node] ?? 0) + demand.defaultedMemory;
    let score =
      (capCpu > 0 ? share(usedCpu, capCpu, most) : 0) +
      (capMemory > 0 ? share(usedMemory, capMemory, most) : 0);
    if (capCpu > 0 && capMemory > 0) {
      score = (score / 2) | 0;
      if (balanced) {
        const cpuShare = Math.min(1, (capCpu - (cpusFree[node] ?? 0) + cpu) / capCpu);
        const memoryShare = Math.min(1, (capMemory - (memoriesFree[node] ?? 0) + memory) / capMemory);
        score += ((1 - Math.abs((cpuShare - memoryShare) / 2)) * MAX) | 0;
      }
    } else if (balanced) {
      score += MAX;
    }
    local[i] = score;
  }
  if (rules.images.length === 0) return;
  for (let i = 0; i < length; i++) {
    local[i] = (local[i] ?? 0) + imageLocality(state, rules.images, rules.containers, nodes[i] ?? 0);
  }
}

// All are from 0 to 100. `| 0` truncates at a fraction of the cost of Math.trunc.
function share(used: number, capacity: number, most: boolean): number {
  if (most) return ((Math.min(used, capacity) * MAX) / capacity) | 0;
  return used > capacity ? 0 : (((capacity - used) * MAX) / capacity) | 0;
}

function imageLocality(
  state: FleetState,
  images: readonly string[],
  containers: number,
  node: number,
): number {
  const held = state.nodes.specs[node]?.images;
  let bytes = 0;
  for (const image of images) {
    const size = held?.[image];
    if (size !== undefined)
      bytes += Math.trunc(size * ((state.imageHolders.get(image) ?? 0) / state.nodes.count));
  }
  const most = IMAGE_MOST_BYTES * containers;
  const counted = Math.min(Math.max(bytes, IMAGE_LEAST_BYTES), most);
  return Math.trunc((MAX * (counted - IMAGE_LEAST_BYTES)) / (most - IMAGE_LEAST_BYTES));
}

/** Computes kube-scheduler's weighted totals into `list.totals`. */
export function kubeTotals(live: LiveRules, list: Shortlist): void {
  const { nodes, totals, local, length } = list;
  for (let i = 0; i < length; i++) totals[i] = (local[i] ?? 0) + TAINT_WEIGHT * MAX;
  if (live.reluctance.nonZero > 0) {
    const reluctance = live.reluctance.values;
    for (let i = 0; i < length; i++) list.raw[i] = reluctance[nodes[i] ?? 0] ?? 0;
    addShareOfMost(list, -TAINT_WEIGHT);
  }
  if (live.preference !== undefined) {
    const preference = live.preference.values;
    for (let i = 0; i < length; i++) list.raw[i] = preference[nodes[i] ?? 0] ?? 0;
    addShareOfMost(list, PREFERENCE_WEIGHT);
  }
  if (live.soft.length > 0) addSpread(live, list);
  if (live.influences.length > 0) addInfluence(live, list);
}

/** Returns the sum over pods for which the class has preferred affinity, minus those for which it has anti-affinity. */
export function influenceOf({ influences }: LiveRules, node: number): number {
  let sum = 0;
  for (const { counter, weight } of influences) {
    const domain = counter.set.topology.domain[node] ?? -1;
    if (domain >= 0) sum += weight * (counter.counts[domain] ?? 0);
  }
  return sum;
}

function addShareOfMost({ raw, totals, length }: Shortlist, weight: number): void {
  let most = 0;
  for (let i = 0; i < length; i++) most = Math.max(most, raw[i] ?? 0);
  if (most === 0) return;
  for (let i = 0; i < length; i++)
    totals[i] = (totals[i] ?? 0) + weight * Math.trunc((MAX * (raw[i] ?? 0)) / most);
}

function addInfluence(live: LiveRules, list: Shortlist): void {
  const { raw, nodes, totals, length } = list;
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < length; i++) {
    const sum = influenceOf(live, nodes[i] ?? 0);
    raw[i] = sum;
    least = Math.min(least, sum);
    most = Math.max(most, sum);
  }
  if (most <= least) return;
  for (let i = 0; i < length; i++) {
    const part = Math.trunc(MAX * (((raw[i] ?? 0) - least) / (most - least)));
    totals[i] = (totals[i] ?? 0) + INFLUENCE_WEIGHT * part;
  }
}

function addSpread(live: LiveRules, list: Shortlist): void {
  const { raw, nodes, totals, length } = list;
  const keyed = live.softNodes?.bits;
  const weights = live.soft.map((rule) => Math.log(domainsAmong(rule.topology, live, list) + 2));
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  for (let i = 0; i < length; i++) {
    const node = nodes[i] ?? 0;
    if (keyed?.[node] !== 1) continue;
    let score = 0;
    for (let r = 0; r < live.soft.length; r++) {
      const rule = live.soft[r];
      if (rule === undefined) continue;
      const count = rule.counter.counts[rule.topology.domain[node] ?? 0] ?? 0;
      score += count * (weights[r] ?? 0) + (rule.maxSkew - 1);
    }
    const rounded = Math.round(score);
    raw[i] = rounded;
    least = Math.min(least, rounded);
    most = Math.max(most, rounded);
  }
  for (let i = 0; i < length; i++) {
    if (keyed?.[nodes[i] ?? 0] !== 1) continue;
    const part = most === 0 ? MAX : Math.trunc((MAX * (most + least - (raw[i] ?? 0))) / most);
    totals[i] = (totals[i] ?? 0) + SPREAD_WEIGHT * part;
  }
}

/** Returns the domains of listed nodes; each listed node stands for a number of nodes. */
function domainsAmong(
  topology: LiveRules["soft"][number]["topology"],
  live: LiveRules,
  list: Shortlist,
): number {
  const keyed = live.softNodes?.bits;
  const domains = new Set<number>();
  let population = 0;
  for (let i = 0; i < list.length; i++) {
    const node = list.nodes[i] ?? 0;
    if (keyed?.[node] !== 1) continue;
    population += list.population[i] ?? 0;
    if (!topology.isPerNode) domains.add(topology.domain[node] ?? -1);
  }
  return topology.isPerNode ? population : domains.size;
}
