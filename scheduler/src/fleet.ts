import { explain } from "./explain/explain.ts";
import { InfeasibleClass } from "./place/infeasible-class.ts";
import { Placer } from "./place/placer.ts";
import { podKey } from "./pod/pod-key.ts";
import { compileBudget } from "./preempt/budgets.ts";
import { best, bestCandidates, type Candidate, candidates } from "./preempt/preempt.ts";
import { defragment } from "./rebalance/defragment.ts";
import { pickVictims } from "./rebalance/pick-victims.ts";
import { SchedulerError } from "./scheduler-error.ts";
import { FleetState } from "./state/fleet-state.ts";
import type {
  DisruptionBudget,
  Explanation,
  NodeSpec,
  PodKey,
  PodSpec,
  Preemption,
  Profile,
  RebalanceOptions,
  RebalancePlan,
} from "./types.ts";

export interface FleetOptions {
  /** The scoring profile. Default: `pack`. */
  readonly profile?: Profile;
}

/** The result of `rank`: the feasible nodes with their scores. */
export interface Ranking {
  readonly totals: ReadonlyMap<string, number>;
  /** Undefined if no node is feasible, or the profile can't score the pod. */
  readonly chosen: string | undefined;
}

/**
 * The nodes and the pods bound to them, updated one change at a time, and the queries that a control plane needs. No
 * call does I/O or reads a clock; the same changes in the same order give the same results.
 */
export class Fleet {
  readonly profile: Profile;
  readonly #state = new FleetState();
  readonly #placer: Placer;
  readonly #budgets = new Map<string, DisruptionBudget>();

  constructor(options: FleetOptions = {}) {
    this.profile = options.profile ?? "pack";
    this.#placer = new Placer(this.#state, this.profile);
  }

  /**
   * Adds or replaces a node; the pods bound to it stay. Returns the extended resources that are not counted, because
   * the node or the fleet offers too many. @throws SchedulerError for an invalid quantity, without a change.
   */
  setNode(spec: NodeSpec): readonly string[] {
    return this.#state.setNode(spec);
  }

  /** Removes a node and the pods bound to it, and returns their keys. */
  removeNode(name: string): PodKey[] {
    const node = this.#state.nodes.indexOf.get(name);
    return node === undefined ? [] : this.#state.removeNode(node);
  }

  /** The number of nodes. */
  get size(): number {
    return this.#state.nodes.count;
  }

  /** A counter that grows with each change of the nodes and of the pods bound to them. */
  get changes(): number {
    return this.#state.log.head;
  }

  /**
   * A counter that grows when something may fit that did not before: a pod has left its node, or a node has changed.
   */
  get freed(): number {
    return this.#state.freed.head;
  }

  nodeNames(): string[] {
    return [...this.#state.nodes.indexOf.keys()];
  }

  /**
   * Records that a pod runs (or will run) on a node, even if it does not fit. @throws SchedulerError `unknown_node`,
   * `already_bound`.
   */
  bind(pod: PodSpec, node: string): void {
    const index = this.#state.nodes.indexOf.get(node);
    if (index === undefined) throw new SchedulerError("unknown_node", `no node ${node}`);
    this.#state.bind(podKey(pod), this.#state.classOf(pod), index);
  }

  /** Removes a pod. Returns false if it was not bound. */
  unbind(key: PodKey): boolean {
    const pod = this.#state.pods.indexOf.get(key);
    if (pod !== undefined) this.#state.unbind(pod);
    return pod !== undefined;
  }

  /**
   * Replaces the specification of a bound pod, which stays on its node and keeps its age. Returns false if it is not
   * bound.
   */
  update(pod: PodSpec): boolean {
    const index = this.#state.pods.indexOf.get(podKey(pod));
    if (index !== undefined) this.#state.setClass(index, this.#state.classOf(pod));
    return index !== undefined;
  }

  /**
   * Marks a pod as terminating: it still uses its node, but no longer counts in topology spread. Returns false if it is
   * not bound.
   */
  setTerminating(key: PodKey, terminating = true): boolean {
    const pod = this.#state.pods.indexOf.get(key);
    if (pod !== undefined) this.#state.setTerminating(pod, terminating);
    return pod !== undefined;
  }

  /** Reports whether any bound pod has a lower priority. */
  hasPodsBelow(priority: number): boolean {
    return this.#state.pods.hasBelow(priority);
  }

  /** Returns a text that is equal for two pods if and only if placement treats them equally, apart from their names. */
  classKey(pod: PodSpec): string {
    return this.#state.keys.of(pod);
  }

  /** Records that no node is feasible for the pod at present. */
  infeasibleClass(pod: PodSpec): InfeasibleClass {
    return new InfeasibleClass(this.#state, this.#placer.live(this.#state.classOf(pod)));
  }

  /** Adds or replaces a disruption budget. @throws SchedulerError `invalid_pod` for an invalid selector. */
  setBudget(budget: DisruptionBudget): void {
    compileBudget(budget);
    this.#budgets.set(podKey(budget), budget);
  }

  removeBudget(namespace: string, name: string): void {
    this.#budgets.delete(podKey({ namespace, name }));
  }

  nodeOf(key: PodKey): string | undefined {
    const pod = this.#state.pods.indexOf.get(key);
    return pod === undefined ? undefined : this.#state.nodes.name(this.#state.pods.node[pod] ?? 0);
  }

  podsOn(node: string): PodKey[] {
    const index = this.#state.nodes.indexOf.get(node);
    return index === undefined ? [] : [...this.#state.pods.on(index)].map((pod) => this.#state.pods.key(pod));
  }

  /** Returns the best node for the pod, or undefined if none is feasible (see `explain`). Binds nothing. */
  place(pod: PodSpec): string | undefined {
    const node = this.#placer.place(this.#state.classOf(pod));
    return node < 0 ? undefined : this.#state.nodes.name(node);
  }

  /** Places and binds the pod in one step. */
  schedule(pod: PodSpec): string | undefined {
    return this.placeBatch(pod, [pod.name])[0];
  }

  /**
   * Places and binds one replica of the template for each name. Returns their nodes, undefined for replicas that don't
   * fit. @throws SchedulerError `already_bound`, before any is placed.
   */
  placeBatch(template: PodSpec, names: readonly string[]): (string | undefined)[] {
    const podClass = this.#state.classOf(template);
    const keys = names.map((name) => podKey({ namespace: template.namespace, name }));
    const taken = keys.find((key) => this.#state.pods.indexOf.has(key));
    if (taken !== undefined) throw new SchedulerError("already_bound", `${taken} is bound already`);
    return keys.map((key, done) => {
      const node = this.#placer.place(podClass, done === 0 ? names.length : 1);
      if (node < 0) return undefined;
      this.#state.bind(key, podClass, node);
      return this.#state.nodes.name(node);
    });
  }

  /** Returns every feasible node with its score, and the choice. */
  rank(pod: PodSpec): Ranking {
    const podClass = this.#state.classOf(pod);
    const { nodes, totals, length } = this.#placer.feasible(podClass);
    const byName = new Map<string, number>();
    for (let i = 0; i < length; i++) byName.set(this.#state.nodes.name(nodes[i] ?? 0), totals[i] ?? 0);
    const chosen = this.#placer.place(podClass);
    return { totals: byName, chosen: chosen < 0 ? undefined : this.#state.nodes.name(chosen) };
  }

  /** Returns the names of the feasible nodes. Empty if the profile can't score the pod. */
  feasibleNodes(pod: PodSpec): string[] {
    const podClass = this.#state.classOf(pod);
    if (!this.#placer.scoring.accepts(podClass)) return [];
    const { nodes, length } = this.#placer.feasible(podClass);
    return Array.from({ length }, (_, index) => this.#state.nodes.name(nodes[index] ?? 0));
  }

  /** Explains why the pod is not placed, with the reason for each node. */
  explain(pod: PodSpec): Explanation {
    const podClass = this.#state.classOf(pod);
    const explanation = explain(this.#state, this.#placer.live(podClass), podKey(pod));
    if (this.#placer.scoring.accepts(podClass)) return explanation;
    // kube-scheduler fails such a pod only after it has found feasible nodes.
    const unreadable = "a preferred node affinity term can't be read";
    return {
      ...explanation,
      nearest: "correct the preferred node affinity",
      summary: `${explanation.summary}; ${unreadable}`,
    };
  }

  /**
   * Returns a node, and the fewest and least important pods to preempt there so that the pod fits; undefined if
   * preemption can't help. `pack` never violates disruption budgets. The kube profiles, like kube-scheduler, do so if
   * no other node is possible.
   */
  preempt(pod: PodSpec): Preemption | undefined {
    const live = this.#placer.live(this.#state.classOf(pod));
    const violationsMost = this.profile === "pack" ? 0 : Number.POSITIVE_INFINITY;
    const [first, ...others] = bestCandidates(this.#state, live, [...this.#budgets.values()], violationsMost);
    if (first === undefined) return undefined;
    const chosen = others.reduce((a, b) => (this.#state.nodes.precedes(b.node, a.node) ? b : a), first);
    return this.#named(chosen);
  }

  /** Returns every node where preemption would help, with its victims, and the equally good ones among them. */
  preemptionCandidates(pod: PodSpec): {
    readonly all: readonly Preemption[];
    readonly best: readonly string[];
  } {
    const choices = this.#preemptions(pod);
    const names = best(this.#state, choices).map(({ node }) => this.#state.nodes.name(node));
    return { all: choices.map((choice) => this.#named(choice)), best: names.sort() };
  }

  /**
   * Returns the pods of a workload (or of one of its revisions) to stop so that the rest is spread evenly. Always
   * selects from the domain with the most replicas.
   */
  pickVictims(workload: string, count: number, revision?: string): PodKey[] {
    return pickVictims(this.#state, workload, count, revision).map((pod) => this.#state.pods.key(pod));
  }

  /** Suggests moves without a change. */
  defragment(options: RebalanceOptions): RebalancePlan {
    return defragment(this.#state, this.#placer, options);
  }

  #preemptions(pod: PodSpec): Candidate[] {
    const live = this.#placer.live(this.#state.classOf(pod));
    const found = candidates(this.#state, live, [...this.#budgets.values()]);
    return this.profile === "pack" ? found.filter(({ violations }) => violations === 0) : found;
  }

  #named({ node, victims }: Candidate): Preemption {
    return {
      node: this.#state.nodes.name(node),
      victims: victims.map((victim) => this.#state.pods.key(victim)),
    };
  }
}
