import type { DomainCounter } from "../state/domain-counter.ts";
import type { FleetState } from "../state/fleet-state.ts";
import { admits, fits, hasRulesAboutPods } from "./admit.ts";
import { isStale, type LiveRules } from "./live-rules.ts";

/**
 * Whether a class that fitted no node may fit one now: certainly, perhaps (only a search can decide), or certainly not.
 */
export type FitChance = "yes" | "maybe" | "no";

/** Checking more nodes individually costs as much as a search over all of them. */
const NODES_MAX = 64;

/**
 * Records that no node was feasible for a class. From then on only nodes that were freed or changed, and the counters
 * that its rules read, can change that. All other changes of the fleet cost nothing.
 */
export class InfeasibleClass {
  readonly #state: FleetState;
  readonly #live: LiveRules;
  readonly #counters: readonly DomainCounter[];
  #seen: number;
  #versions: number;

  constructor(state: FleetState, live: LiveRules) {
    this.#state = state;
    this.#live = live;
    this.#counters = [...live.hard.map(({ counter }) => counter), ...live.affinity, ...live.repelling];
    this.#seen = state.freed.head;
    this.#versions = sumOf(this.#counters);
  }

  /** Evaluates the changes since the last call, or since then. Ignores the node `except`. */
  fitChance(except?: string): FitChance {
    const { freed } = this.#state;
    // The counters behind the rules were dropped or extended, so only a search can decide.
    if (isStale(this.#live, this.#state)) return "maybe";
    let chance: FitChance = "no";
    const versions = sumOf(this.#counters);
    if (versions !== this.#versions) chance = "maybe";
    this.#versions = versions;
    const from = this.#seen;
    this.#seen = freed.head;
    if (from === freed.head) return chance;
    if (!freed.reaches(from) || freed.head - from > NODES_MAX) return "maybe";
    for (let at = from; at < freed.head; at++) {
      const node = freed.at(at);
      if (except !== undefined && this.#state.nodes.specs[node]?.name === except) continue;
      const here = this.#ask(node);
      if (here === "yes") return "yes";
      if (here === "maybe") chance = "maybe";
    }
    return chance;
  }

  #ask(node: number): FitChance {
    const { podClass, admitted } = this.#live;
    const { nodes } = this.#state;
    if (admitted.bits[node] !== 1) return "no";
    if (fits(nodes, podClass.demand, node)) {
      if (!hasRulesAboutPods(this.#live) || admits(this.#live, node)) return "yes";
      return this.#couldPreempt(node) ? "maybe" : "no";
    }
    return this.#couldPreempt(node) && this.#couldFit(node) ? "maybe" : "no";
  }

  #couldPreempt(node: number): boolean {
    const { pods, nodes } = this.#state;
    const { preempts, priority } = this.#live.podClass;
    if (!preempts || !pods.hasBelow(priority)) return false;
    for (let pod = nodes.firstPod[node] ?? -1; pod >= 0; pod = pods.nextOnNode[pod] ?? -1)
      if ((pods.classes[pod]?.priority ?? 0) < priority) return true;
    return false;
  }

  /** Reports whether cpu and memory would fit without the pods of lower priority. */
  #couldFit(node: number): boolean {
    const { pods, nodes } = this.#state;
    const { demand, priority } = this.#live.podClass;
    let cpu = nodes.cpu.free[node] ?? 0;
    let memory = nodes.memory.free[node] ?? 0;
    for (let pod = nodes.firstPod[node] ?? -1; pod >= 0; pod = pods.nextOnNode[pod] ?? -1) {
      const other = pods.classes[pod];
      if (other === undefined || other.priority >= priority) continue;
      cpu += other.demand.cpu;
      memory += other.demand.memory;
    }
    return (demand.cpu === 0 || demand.cpu <= cpu) && (demand.memory === 0 || demand.memory <= memory);
  }
}

function sumOf(counters: readonly DomainCounter[]): number {
  let sum = 0;
  for (const { version } of counters) sum += version;
  return sum;
}
