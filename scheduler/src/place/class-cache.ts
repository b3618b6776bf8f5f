import type { DomainCounter } from "../state/domain-counter.ts";
import { type FleetState, MANY_DOMAINS } from "../state/fleet-state.ts";
import type { Topology } from "../state/topology.ts";
import { fits } from "./admit.ts";
import { influenceOf } from "./kube-score.ts";
import { isStale, type LiveRules } from "./live-rules.ts";
import type { Scoring } from "./profile.ts";
import { Ranking } from "./ranking.ts";
import { Shortlist } from "./shortlist.ts";

// With more groups than this share of the nodes, visiting the groups is no faster than visiting the nodes.
const GROUPS_SHARE = 8;
const GROUPS_LEAST = 32;

// The rankings are rebuilt when they have this many times more entries than nodes.
const SLACK = 3;

/**
 * Keeps the feasible nodes of one class in groups. All rules about other pods give the same result for all nodes of a
 * group. Placement compares only the best node of each group, and a change updates only the changed nodes.
 */
export class ClassCache {
  readonly live: LiveRules;
  readonly #state: FleetState;
  readonly #scoring: Scoring;
  readonly #one = new Shortlist();
  #groups = new Map<string, Ranking>();
  #groupOf: (Ranking | undefined)[] = [];
  #local = new Float64Array(0);
  #seen = 0;
  #nodesVersion = 0;
  #columns = 0;
  #entries = 0;
  #few: Topology[] = [];
  #many: DomainCounter[] = [];
  #manyInfluences = false;
  #all: Topology[] = [];
  #isMany: boolean[] = [];

  constructor(state: FleetState, live: LiveRules, scoring: Scoring) {
    this.#state = state;
    this.live = live;
    this.#scoring = scoring;
    this.#build();
  }

  /** Reports whether the class can be cached. Some soft constraints need every feasible node's domain. */
  get isUseful(): boolean {
    const groupsMost = Math.max(GROUPS_LEAST, this.#state.nodes.count / GROUPS_SHARE);
    if (this.#groups.size > groupsMost) return false;
    return !this.live.soft.some(({ topology }) => !topology.isPerNode && topology.count > MANY_DOMAINS);
  }

  get isStale(): boolean {
    return isStale(this.live, this.#state);
  }

  /** Applies the fleet's changes, then lists the best node of each group that the rules admit. */
  list(list: Shortlist, admits: (node: number) => boolean): void {
    this.#sync();
    list.reserve(this.#groups.size);
    const local = this.#local;
    for (const group of this.#groups.values()) {
      const node = group.top(
        this.#state,
        (candidate, at) => this.#groupOf[candidate] === group && local[candidate] === at,
      );
      if (node < 0) this.#drop(group);
      else if (admits(node)) list.push(node, local[node] ?? 0, group.population);
    }
  }

  #drop(group: Ranking): void {
    this.#groups.delete(group.key);
  }

  #sync(): void {
    const { log, nodes } = this.#state;
    const extended = this.#columns !== nodes.columnsVersion;
    const images =
      this.live.podClass.rules.images.length > 0 && this.#nodesVersion !== this.#state.nodesVersion;
    const crossed = this.#hasCrossed();
    const crowded = this.#entries > SLACK * nodes.count + REMADE_LEAST;
    if (extended || images || crossed || crowded || !log.reaches(this.#seen)) this.#build();
    for (; this.#seen < log.head; this.#seen++) this.#refresh(log.at(this.#seen));
  }

  /** Reports whether a topology's number of domains has crossed the threshold between few and many. */
  #hasCrossed(): boolean {
    const all = this.#all;
    for (let i = 0; i < all.length; i++)
      if ((all[i]?.count ?? 0) > MANY_DOMAINS !== this.#isMany[i]) return true;
    return false;
  }

  #build(): void {
    const { nodes, log, nodesVersion } = this.#state;
    this.#groups = new Map();
    this.#groupOf = new Array(nodes.capacity).fill(undefined);
    this.#local = new Float64Array(nodes.capacity).fill(Number.NaN);
    this.#seen = log.head;
    this.#nodesVersion = nodesVersion;
    this.#columns = nodes.columnsVersion;
    this.#entries = 0;
    this.#splitTopologies();
    for (let node = 0; node < nodes.end; node++) this.#refresh(node);
  }

  #refresh(node: number): void {
    const state = this.#state;
    const { podClass, admitted } = this.live;
    const before = this.#groupOf[node];
    const feasible = admitted.bits[node] === 1 && fits(state.nodes, podClass.demand, node);
    if (!feasible) {
      if (before !== undefined) before.population--;
      this.#groupOf[node] = undefined;
      return;
    }
    this.#scoring.locals(state, this.live, this.#one.single(node));
    const local = this.#one.local[0] ?? 0;
    const group = this.#group(this.#keyOf(node));
    if (group === before && local === this.#local[node]) return;
    if (group !== before) {
      if (before !== undefined) before.population--;
      group.population++;
      this.#groupOf[node] = group;
    }
    this.#local[node] = local;
    group.push(state, node, local);
    this.#entries++;
  }

  #group(key: string): Ranking {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new Ranking(key);
      this.#groups.set(key, group);
    }
    return group;
  }

  /** Returns a key that is equal for nodes which all rules treat equally, and all scores except the local one. */
  #keyOf(node: number): string {
    const { reluctance, preference, softNodes } = this.live;
    let key = reluctance.values[node] === 0 ? "" : `r${reluctance.values[node]}`;
    if (preference !== undefined) key += `p${preference.values[node]}`;
    if (softNodes !== undefined) key += softNodes.bits[node] === 1 ? "s" : "-";
    for (const topology of this.#few) key += `,${topology.domain[node]}`;
    for (const counter of this.#many) {
      const domain = counter.set.topology.domain[node] ?? -1;
      key += domain < 0 ? ";" : `;${counter.counts[domain]}`;
    }
    if (this.#manyInfluences && this.#scoring.profile !== "pack") key += `i${influenceOf(this.live, node)}`;
    return key;
  }

  #counters(): DomainCounter[] {
    const { hard, soft, affinity, repelling, siblings } = this.live;
    const spread = [...hard, ...soft].map((rule) => rule.counter);
    return [...spread, ...affinity, ...repelling, ...(siblings ? [siblings.zones, siblings.nodes] : [])];
  }

  #topologies(): Topology[] {
    return [...this.#counters(), ...this.live.influences.map((i) => i.counter)].map((c) => c.set.topology);
  }

  #splitTopologies(): void {
    const isMany = (counter: DomainCounter) => counter.set.topology.count > MANY_DOMAINS;
    const counters = this.#counters();
    const influences = this.live.influences.map((influence) => influence.counter);
    const pack = this.#scoring.profile === "pack";
    this.#all = [...new Set(this.#topologies())];
    this.#isMany = this.#all.map((topology) => topology.count > MANY_DOMAINS);
    this.#many = [...counters, ...(pack ? influences : [])].filter(isMany);
    this.#manyInfluences = influences.some(isMany);
    this.#few = [
      ...new Set([...counters, ...influences].filter((c) => !isMany(c)).map((c) => c.set.topology)),
    ];
  }
}

// Prevents small fleets from rebuilding after every few changes.
const REMADE_LEAST = 256;
