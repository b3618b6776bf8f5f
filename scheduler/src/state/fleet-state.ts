import { addDemand, type Demand, demandOf } from "../pod/demand.ts";
import { ClassKeys, identityKey, joinKeys, type PodClass } from "../pod/pod-class.ts";
import { compileRules, type PodRules } from "../pod/pod-rules.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { NodeSpec, PodKey, PodSpec } from "../types.ts";
import { ChangeLog } from "./change-log.ts";
import { Counts } from "./counts.ts";
import type { DomainCounter } from "./domain-counter.ts";
import { Identities, type Identity } from "./identities.ts";
import { NodeFacts } from "./node-facts.ts";
import type { NodeIndex } from "./node-index.ts";
import { type NamedResource, NodeTable } from "./node-table.ts";
import { type PodIndex, PodTable } from "./pod-table.ts";
import type { RuleCounter } from "./rule-counter.ts";

/** From this number of domains on, nodes are grouped by the count of their domain instead of by the domain itself. */
export const MANY_DOMAINS = 64;

// The limit of cached results in words per node, and a minimum, beyond which they are dropped. With the columns they
// stay well within 2 KB per node.
const CELLS_PER_NODE = 192;
const CELLS_LEAST = 262_144;
const CLASSES_MAX = 2048;

/** The fleet as columns, lists and counters. A change updates only what it affects. */
export class FleetState {
  readonly nodes = new NodeTable();
  readonly pods = new PodTable(this.nodes);
  readonly facts = new NodeFacts(this.nodes);
  readonly identities = new Identities();
  readonly counts: Counts;
  readonly keys = new ClassKeys();
  readonly log = new ChangeLog();
  /** Nodes on which something may fit that did not before, because a pod left or the node itself changed. */
  readonly freed = new ChangeLog();
  /** The number of nodes that have each image. */
  readonly imageHolders = new Map<string, number>();
  /** A counter that grows when everything derived from classes must be rebuilt. */
  generation = 0;
  /** A counter that grows when nodes are added, removed or change their images. */
  nodesVersion = 0;
  #demands = new Map<string, Demand>();
  #rules = new Map<string, PodRules>();
  #classes = new Map<string, PodClass>();
  #ruleCounters = new WeakMap<PodRules, readonly RuleCounter[]>();
  /** Bound pods that count as gone during a trial. A new counter must exclude them. */
  readonly #excluded = new Set<PodIndex>();

  constructor() {
    const visit = (identity: Identity, each: (node: number, terminating: boolean) => void) => {
      const { node, nextOfIdentity, terminating } = this.pods;
      for (let pod = identity.firstPod; pod >= 0; pod = nextOfIdentity[pod] ?? -1) {
        if (!this.#excluded.has(pod)) each(node[pod] ?? 0, terminating[pod] === 1);
      }
    };
    this.counts = new Counts(this.identities, this.facts, visit);
  }

  /**
   * Adds or replaces a node. Returns the extended resources that are not counted, because the node or the fleet offers
   * too many.
   */
  setNode(spec: NodeSpec): readonly string[] {
    const known = this.nodes.indexOf.get(spec.name);
    const pods = known === undefined ? [] : [...this.pods.on(known)];
    const before = known === undefined ? undefined : this.nodes.specs[known];
    for (const pod of pods) this.#count(pod, -1);
    try {
      const { index: node, left, fresh } = this.nodes.set(spec);
      if (fresh.length > 0) this.#subtractUsed(fresh);
      this.#countImages(before, -1);
      this.#countImages(spec, 1);
      this.facts.update(node);
      this.nodesVersion++;
      this.log.push(node);
      this.freed.push(node);
      return left;
    } finally {
      for (const pod of pods) this.#count(pod, 1);
    }
  }

  removeNode(node: NodeIndex): PodKey[] {
    const gone: PodKey[] = [];
    for (const pod of [...this.pods.on(node)]) {
      gone.push(this.pods.key(pod));
      this.unbind(pod);
    }
    this.#countImages(this.nodes.specs[node], -1);
    this.nodes.remove(node);
    this.facts.update(node);
    this.nodesVersion++;
    this.log.push(node);
    this.freed.push(node);
    return gone;
  }

  bind(key: PodKey, podClass: PodClass, node: NodeIndex): PodIndex {
    if (this.pods.indexOf.has(key)) throw new SchedulerError("already_bound", `${key} is bound already`);
    const pod = this.pods.add(key, podClass, node);
    addDemand(this.nodes, node, podClass.demand, 1);
    this.#count(pod, 1);
    this.log.push(node);
    return pod;
  }

  unbind(pod: PodIndex): void {
    const node = this.pods.node[pod] ?? 0;
    this.#count(pod, -1);
    addDemand(this.nodes, node, this.pods.classOf(pod).demand, -1);
    this.pods.remove(pod);
    this.log.push(node);
    this.freed.push(node);
  }

  /** Assigns a bound pod another class after a change of its labels or requests. It keeps its node and its age. */
  setClass(pod: PodIndex, podClass: PodClass): void {
    if (this.pods.classes[pod] === podClass) return;
    const node = this.pods.node[pod] ?? 0;
    this.#count(pod, -1);
    addDemand(this.nodes, node, this.pods.classOf(pod).demand, -1);
    this.pods.setClass(pod, podClass);
    addDemand(this.nodes, node, podClass.demand, 1);
    this.#count(pod, 1);
    this.log.push(node);
    this.freed.push(node);
  }

  setTerminating(pod: PodIndex, terminating: boolean): void {
    if ((this.pods.terminating[pod] === 1) === terminating) return;
    this.pods.terminating[pod] = terminating ? 1 : 0;
    const node = this.pods.node[pod] ?? 0;
    for (const { counter, countsTerminating } of this.pods.classOf(pod).identity.counters) {
      if (!countsTerminating) this.#add(counter, node, terminating ? -1 : 1);
    }
    this.log.push(node);
  }

  /**
   * Removes a bound pod from all counts and resources, or restores it, without removing it from the lists. Used to
   * evaluate the fleet without the pod.
   */
  setPresent(pod: PodIndex, present: boolean): void {
    const sign = present ? 1 : -1;
    this.#count(pod, sign);
    if (present) this.#excluded.delete(pod);
    else this.#excluded.add(pod);
    addDemand(this.nodes, this.pods.node[pod] ?? 0, this.pods.classOf(pod).demand, sign);
    this.log.push(this.pods.node[pod] ?? 0);
  }

  /**
   * Returns the pod's class. Pods that differ only in their names share one object.
   * @throws SchedulerError if the pod is invalid.
   */
  classOf(pod: PodSpec): PodClass {
    const [ofDemand, ofRules, ofIdentity] = [this.keys.demand(pod), this.keys.rules(pod), identityKey(pod)];
    const preempts = pod.preemptionPolicy !== "Never";
    const key = joinKeys(pod, ofDemand, ofRules, ofIdentity);
    const known = this.#classes.get(key);
    if (known !== undefined) return known;
    this.forgetIfFull();
    const podClass: PodClass = {
      demand: remember(this.#demands, ofDemand, () => demandOf(pod, this.nodes)),
      rules: remember(this.#rules, ofRules, () => compileRules(pod)),
      identity: this.identities.get(ofIdentity) ?? this.#introduce(ofIdentity, pod),
      priority: pod.priority ?? 0,
      preempts,
    };
    this.#classes.set(key, podClass);
    return podClass;
  }

  /** Returns the counters of the rules about other pods that pods with these rules have. */
  ruleCountersOf(rules: PodRules): readonly RuleCounter[] {
    let ruleCounters = this.#ruleCounters.get(rules);
    if (ruleCounters === undefined) {
      ruleCounters = [
        ...rules.antiAffinity.map((term) => this.counts.ruleCounter({ kind: "anti-affinity", ...term })),
        ...rules.affinity.map((term) => this.counts.ruleCounter({ kind: "affinity", ...term })),
        ...rules.preferred.map((term) => this.counts.ruleCounter({ kind: "preferred", ...term })),
      ];
      this.#ruleCounters.set(rules, ruleCounters);
    }
    return ruleCounters;
  }

  /**
   * Drops cached results when they are too large. Classes of unbound pods become invalid, so call this before
   * requesting a class.
   */
  forgetIfFull(): void {
    const most = Math.max(CELLS_LEAST, CELLS_PER_NODE * this.nodes.count);
    if (this.#classes.size < CLASSES_MAX && this.facts.cells + this.counts.cells < most) return;
    this.generation++;
    this.#classes.clear();
    this.#demands.clear();
    this.#rules.clear();
    this.#ruleCounters = new WeakMap();
    this.counts.forget();
    this.identities.forget();
    this.facts.forget();
    this.nodes.forgetNames(this.#namesInUse());
  }

  /** Subtracts what bound pods use of resources that no node has offered so far. */
  #subtractUsed(fresh: readonly number[]): void {
    for (const pod of this.pods.indexOf.values()) {
      for (const { resource, amount } of this.pods.classOf(pod).demand.extended) {
        const free = fresh.includes(resource.column) ? this.nodes.columns[resource.column]?.free : undefined;
        const node = this.pods.node[pod] ?? 0;
        if (free !== undefined) free[node] = (free[node] ?? 0) - amount;
      }
    }
  }

  #namesInUse(): ReadonlySet<NamedResource> {
    const used = new Set<NamedResource>();
    for (const pod of this.pods.indexOf.values())
      for (const { resource } of this.pods.classOf(pod).demand.extended) used.add(resource);
    return used;
  }

  #countImages(spec: NodeSpec | undefined, sign: 1 | -1): void {
    for (const image in spec?.images) {
      const holders = (this.imageHolders.get(image) ?? 0) + sign;
      if (holders > 0) this.imageHolders.set(image, holders);
      else this.imageHolders.delete(image);
    }
  }

  #introduce(key: string, pod: PodSpec): Identity {
    const { namespace, labels = {}, workload, revision } = pod;
    const identity = this.identities.add(key, { namespace, labels, workload, revision });
    this.counts.introduce(identity);
    return identity;
  }

  #count(pod: PodIndex, sign: 1 | -1): void {
    const { identity, rules } = this.pods.classOf(pod);
    const node = this.pods.node[pod] ?? 0;
    const terminating = this.pods.terminating[pod] === 1;
    for (const { counter, countsTerminating } of identity.counters) {
      if (countsTerminating || !terminating) this.#add(counter, node, sign);
    }
    for (const ruleCounter of this.ruleCountersOf(rules)) {
      ruleCounter.holders += sign;
      this.#add(ruleCounter.counter, node, sign);
    }
  }

  #add(counter: DomainCounter, node: NodeIndex, delta: number): void {
    const domain = counter.add(node, delta);
    counter.version++;
    const { topology } = counter.set;
    if (domain < 0 || topology.count <= MANY_DOMAINS) return;
    // Nodes of such a domain are grouped by its count, so all of them have changed.
    const nodes = topology.nodesOf(domain);
    if (nodes.size > 1) for (const other of nodes) this.log.push(other);
  }
}

function remember<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
