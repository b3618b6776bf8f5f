import type { FleetState } from "../state/fleet-state.ts";
import { TIGHTNESS_CLASSES } from "../state/tightness.ts";
import { admits, fits, hasRulesAboutPods } from "./admit.ts";
import type { LiveRules } from "./live-rules.ts";
import { deviceWaste, packFit, packFitMost } from "./pack-fit.ts";
import { type Preferences, preferencesOf } from "./pack-score.ts";

/**
 * Returns the best node for the class, or -1 if none is feasible. The result equals listing and scoring all nodes.
 * Nodes are visited by tightness, and classes of nodes that can't beat the best one so far are skipped.
 */
export function packBest(state: FleetState, live: LiveRules): number {
  const search = new Search(state, live);
  search.start();
  for (let tightness = 0; tightness < TIGHTNESS_CLASSES; tightness++) search.visitClass(tightness);
  return search.chosen;
}

class Search {
  chosen = -1;
  #most = Number.NEGATIVE_INFINITY;
  #rank = 0;
  readonly #state: FleetState;
  readonly #live: LiveRules;
  readonly #preferences: Preferences | undefined;
  /** The largest share of a node that the pod needs. */
  #taken = 0;

  constructor(state: FleetState, live: LiveRules) {
    this.#state = state;
    this.#live = live;
    this.#preferences = preferencesOf(live);
  }

  /** Visits the nodes that attract the class, which the bounds don't cover. */
  start(): void {
    const { nodes } = this.#state;
    const { demand } = this.#live.podClass;
    this.#taken = Math.max(demand.cpu * nodes.cpu.perUnitMost, demand.memory * nodes.memory.perUnitMost);
    if (this.#preferences !== undefined) this.#visit(this.#preferences.drawn(), Number.POSITIVE_INFINITY);
  }

  visitClass(tightness: number): void {
    const [least, most] = [tightness / TIGHTNESS_CLASSES, (tightness + 1) / TIGHTNESS_CLASSES];
    const bound = packFitMost(tightness === 0 ? Number.NEGATIVE_INFINITY : least, most, this.#taken);
    const prefersMost = this.#preferences?.most ?? 0;
    if (bound + prefersMost >= this.#most)
      this.#visit(this.#state.nodes.tightness.nodes(tightness), prefersMost);
  }

  #visit(nodes: readonly number[], prefersMost: number): void {
    const live = this.#live;
    const wishes = this.#preferences;
    const table = this.#state.nodes;
    const { podsFree, tieBreakers } = table;
    const { bits } = live.admitted;
    const { demand } = live.podClass;
    const [cpus, memories, perCpus, perMemories] = [
      table.cpu.free,
      table.memory.free,
      table.cpu.perUnit,
      table.memory.perUnit,
    ];
    const needCpu = demand.cpu > 0 ? demand.cpu : Number.NEGATIVE_INFINITY;
    const needMemory = demand.memory > 0 ? demand.memory : Number.NEGATIVE_INFINITY;
    const devices = table.columns.length > table.firstExtended;
    const others = hasRulesAboutPods(live);
    let { chosen } = this;
    let most = this.#most;
    let leastRank = this.#rank;
    const cpuAsked = demand.cpu;
    const memoryAsked = demand.memory;
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i] ?? 0;
      const cpu = cpus[node] ?? 0;
      const memory = memories[node] ?? 0;
      if (cpu < needCpu || memory < needMemory || bits[node] !== 1 || (podsFree[node] ?? 0) <= 0) continue;
      const perCpu = perCpus[node] ?? 0;
      const perMemory = perMemories[node] ?? 0;
      let total = packFit(cpu * perCpu, memory * perMemory, cpuAsked * perCpu, memoryAsked * perMemory);
      if (devices) total -= deviceWaste(table, live.podClass, node);
      if (total + prefersMost < most) continue;
      if (wishes !== undefined) total += wishes.at(node);
      if (total < most) continue;
      const rank = tieBreakers[node] ?? 0;
      if (total === most && (rank > leastRank || (rank === leastRank && !table.precedes(node, chosen))))
        continue;
      if (!fits(table, demand, node) || (others && !admits(live, node))) continue;
      chosen = node;
      most = total;
      leastRank = rank;
    }
    this.chosen = chosen;
    this.#most = most;
    this.#rank = leastRank;
  }
}
