import { conflictingPort } from "../match/host-ports.ts";
import { admits, hasRulesAboutPods } from "../place/admit.ts";
import type { LiveRules } from "../place/live-rules.ts";
import type { Demand } from "../pod/demand.ts";
import type { PodClass } from "../pod/pod-class.ts";
import type { DomainCounter } from "../state/domain-counter.ts";
import type { FleetState } from "../state/fleet-state.ts";

/**
 * Evaluates a class on a node as if some of the node's pods were gone. The fleet's resources stay unchanged. The
 * counters that the class's rules read are changed during a trial, and `end` restores them.
 */
export class Trial {
  readonly #state: FleetState;
  readonly #live: LiveRules;
  readonly #counted: boolean;
  readonly #read: ReadonlySet<DomainCounter>;
  /** Counters that the class's rules read and that include pods of another class. */
  readonly #counters = new Map<
    PodClass,
    { readonly always: DomainCounter[]; readonly unlessTerminating: DomainCounter[] }
  >();
  readonly #asksPorts: boolean;
  readonly #asksExtended: boolean;
  readonly #gone = new Set<number>();
  #node = 0;
  #cpu = 0;
  #memory = 0;
  #storage = 0;
  #pods = 0;
  readonly #extended: number[] = [];

  constructor(state: FleetState, live: LiveRules) {
    this.#state = state;
    this.#live = live;
    this.#asksPorts = live.podClass.demand.ports.length > 0;
    this.#asksExtended = live.podClass.demand.extended.length > 0;
    this.#counted = hasRulesAboutPods(live);
    this.#read = new Set([...live.hard.map((rule) => rule.counter), ...live.affinity, ...live.repelling]);
  }

  /** Starts a trial with all of `gone` removed from the node. End it with those that are still removed. */
  start(node: number, gone: readonly number[]): void {
    const { nodes } = this.#state;
    this.#node = node;
    this.#cpu = nodes.cpu.free[node] ?? 0;
    this.#memory = nodes.memory.free[node] ?? 0;
    this.#storage = nodes.storage.free[node] ?? 0;
    this.#pods = nodes.podsFree[node] ?? 0;
    const { extended } = this.#live.podClass.demand;
    for (let i = 0; i < extended.length; i++) {
      this.#extended[i] = nodes.columns[extended[i]?.resource.column ?? -1]?.free[node] ?? 0;
    }
    for (const pod of gone) this.remove(pod);
  }

  end(gone: readonly number[]): void {
    for (const pod of gone) this.restore(pod);
  }

  remove(pod: number): void {
    if (this.#asksPorts) this.#gone.add(pod);
    this.#change(pod, 1);
  }

  restore(pod: number): void {
    if (this.#asksPorts) this.#gone.delete(pod);
    this.#change(pod, -1);
  }

  /** Reports whether the class could run on the node in the trial's state. */
  admitted(): boolean {
    const { demand } = this.#live.podClass;
    if (this.#pods <= 0) return false;
    if (demand.cpu > 0 && demand.cpu > this.#cpu) return false;
    if (demand.memory > 0 && demand.memory > this.#memory) return false;
    if (demand.storage > 0 && demand.storage > this.#storage) return false;
    for (let i = 0; i < demand.extended.length; i++) {
      if ((demand.extended[i]?.amount ?? 0) > (this.#extended[i] ?? 0)) return false;
    }
    if (this.#asksPorts && this.#portTaken()) return false;
    return !this.#counted || admits(this.#live, this.#node);
  }

  #change(pod: number, freed: 1 | -1): void {
    const podClass = this.#state.pods.classes[pod];
    if (podClass === undefined) return;
    const { demand } = podClass;
    this.#cpu += freed * demand.cpu;
    this.#memory += freed * demand.memory;
    this.#storage += freed * demand.storage;
    this.#pods += freed;
    if (this.#asksExtended) this.#changeExtended(demand, freed);
    if (!this.#counted) return;
    const { always, unlessTerminating } = this.#countersOf(podClass);
    for (const counter of always) counter.add(this.#node, -freed);
    if (this.#state.pods.terminating[pod] === 1) return;
    for (const counter of unlessTerminating) counter.add(this.#node, -freed);
  }

  #changeExtended(demand: Demand, freed: 1 | -1): void {
    const { extended } = this.#live.podClass.demand;
    for (let i = 0; i < extended.length; i++) {
      const own = demand.extended.find(({ resource }) => resource === extended[i]?.resource);
      this.#extended[i] = (this.#extended[i] ?? 0) + freed * (own?.amount ?? 0);
    }
  }

  #countersOf(podClass: PodClass): {
    readonly always: DomainCounter[];
    readonly unlessTerminating: DomainCounter[];
  } {
    let counters = this.#counters.get(podClass);
    if (counters === undefined) {
      const matched = podClass.identity.counters.filter(({ counter }) => this.#read.has(counter));
      const carried = this.#state.ruleCountersOf(podClass.rules).map(({ counter }) => counter);
      counters = {
        always: [
          ...matched.filter((entry) => entry.countsTerminating).map(({ counter }) => counter),
          ...carried.filter((counter) => this.#read.has(counter)),
        ],
        unlessTerminating: matched.filter((entry) => !entry.countsTerminating).map(({ counter }) => counter),
      };
      this.#counters.set(podClass, counters);
    }
    return counters;
  }

  #portTaken(): boolean {
    const { demand } = this.#live.podClass;
    for (const pod of this.#state.pods.on(this.#node)) {
      if (this.#gone.has(pod)) continue;
      if (conflictingPort(demand.ports, this.#state.pods.classOf(pod).demand.ports) !== undefined)
        return true;
    }
    return false;
  }
}
