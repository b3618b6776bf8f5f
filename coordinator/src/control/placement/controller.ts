import {
  type Explanation,
  Fleet,
  podKey as fleetKey,
  type NodeSpec,
  type PodSpec,
  type Profile,
  type RebalanceOptions,
  type RebalancePlan,
  type Taint,
} from "@forage/scheduler";
import type { Logger } from "pino";
import { batches, type Piece } from "../../model/batches.ts";
import { encodePod } from "../../model/codec.ts";
import { conditionTaints } from "../../model/node-taints.ts";
import { taintsFrom } from "../../model/pod-rules.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { Change, NodeEntry, PodEntry } from "../../state/entries.ts";
import { labelsOf } from "../../state/node-labels.ts";
import type { State } from "../../state/state.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../clock.ts";
import { endOf } from "../job/pod-state.ts";
import { Loop } from "../loop.ts";
import { bindClaims, claimTiesOf } from "./claims.ts";
import { Nominations } from "./nominations.ts";
import type { Unplaced } from "./unplaced.ts";

export interface PlacementControllerOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  /** Nothing is reconciled before it resolves. Default: at once. */
  readonly started?: Promise<void> | undefined;
  readonly profile: Profile;
  /** Takes note of why pods are not placed. */
  readonly unplaced: Unplaced;
}

const key = "fleet";
/** Some tens of milliseconds of work; in between heartbeats are heard and calls answered. */
const placedAtOnce = 1_000;

/** Binds pods to nodes. The fleet's state follows the view, change by change. */
export class PlacementController {
  readonly #options: PlacementControllerOptions;
  readonly #fleet: Fleet;
  readonly #nominations: Nominations;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;

  constructor(options: PlacementControllerOptions) {
    this.#options = options;
    this.#fleet = new Fleet({ profile: options.profile });
    this.#nominations = new Nominations({
      fleet: this.#fleet,
      state: options.state,
      nowMs: options.clock.nowMs,
    });
    this.#loop = new Loop({
      name: "placement",
      reconcile: () => this.#placeAll(),
      clock: options.clock,
      log: options.log,
      started: options.started,
    });
    for (const node of options.state.nodes()) this.#describe(node);
    // In the order in which they were bound, so that a coordinator that starts anew chooses as the one before it.
    for (const pod of options.state.pods().sort(byBinding)) this.#setPod(pod);
    this.#unsubscribe = options.state.subscribe((changes) => this.#follow(changes));
    this.#loop.wake(key);
  }

  /** Which of the pods to stop so that the rest stay spread. */
  pickVictims(pods: readonly PodEntry[], count: number): readonly PodEntry[] {
    if (count <= 0) return [];
    if (count >= pods.length) return pods;
    const workload = pods[0]?.workloadKey ?? "";
    const order = this.#fleet.pickVictims(workload, Number.MAX_SAFE_INTEGER);
    const rank = new Map(order.map((name, index) => [name as string, index]));
    const rankOf = (pod: PodEntry): number => rank.get(fleetKey(pod.record)) ?? -1;
    return [...pods].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, count);
  }

  /** Each node with what keeps the pod off it; undefined when it waits for something else than a node. */
  explain(pod: PodEntry): Explanation | undefined {
    const ties = claimTiesOf(pod, this.#options.state);
    return ties.problem === undefined ? this.#fleet.explain(podSpecOf(pod.record, ties.nodes)) : undefined;
  }

  /** Moves that would make things better; makes none. */
  suggestMoves(options: RebalanceOptions): RebalancePlan {
    return this.#fleet.defragment(options);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.close();
  }

  #follow(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "node") this.#setNode(change.before, change.after);
      if (change.kind !== "pod") continue;
      // A pod that stays after all counts in the spread again.
      if (isLeaving(change.before) && !isLeaving(change.after))
        this.#fleet.unbind(fleetKey(change.before.record));
      if (change.after !== undefined) this.#setPod(change.after);
      else if (change.before !== undefined) this.#removePod(change.before);
    }
    this.#loop.wake(key);
  }

  #setNode(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    if (after === undefined) {
      if (before !== undefined) this.#fleet.removeNode(before.name);
      return;
    }
    if (before !== undefined && !placementChanged(before, after)) return;
    this.#describe(after);
    for (const pod of this.#options.state.podsOnNode(after.name).sort(byBinding)) this.#setPod(pod);
  }

  #describe(node: NodeEntry): void {
    const spec = nodeSpecOf(node);
    try {
      this.#fleet.setNode(spec);
    } catch (err) {
      // What a node says of itself must not keep pods from all others.
      this.#options.log.error(
        { node: node.name, err },
        "node has amounts that can't be read: it takes no pods",
      );
      this.#fleet.setNode({ ...spec, allocatable: {} });
    }
  }

  #setPod(pod: PodEntry): void {
    const name = fleetKey(pod.record);
    const { node } = pod.record;
    if (node === "" || this.#options.state.node(node) === undefined) return;
    const bound = this.#fleet.nodeOf(name);
    // What it used is free again, though its record stays for the logs.
    if (pod.record.job !== undefined && endOf(pod) !== undefined) {
      if (bound !== undefined) this.#fleet.unbind(name);
      return;
    }
    if (bound !== undefined && bound !== node) this.#fleet.unbind(name);
    if (bound !== node) this.#fleet.bind(podSpecOf(pod.record), node);
    if (isLeaving(pod)) this.#fleet.setTerminating(name);
  }

  #removePod(pod: PodEntry): void {
    this.#fleet.unbind(fleetKey(pod.record));
    this.#options.unplaced.clear(pod.record.uid);
    this.#nominations.forget(pod.record.uid);
  }

  async #placeAll(): Promise<undefined> {
    const waiting = this.#options.state.unboundPods().sort(byImportance);
    const open = new Set<Binding>();
    const pass: Pass = { claims: new Set(), stops: [], again: false };
    try {
      for (let first = 0; first < waiting.length; first += placedAtOnce) {
        const placed = waiting
          .slice(first, first + placedAtOnce)
          .flatMap((pod) => (this.#isAsItWas(pod) ? (this.#place(pod, pass) ?? []) : []));
        for (const binding of placed) open.add(binding);
        for (const part of batches(placed)) {
          if (await this.#write(part)) for (const binding of part) open.delete(binding);
        }
      }
      for (const part of batches(pass.stops)) await this.#write(part);
    } finally {
      this.#takeBack(open);
    }
    if (open.size > 0 || pass.again) this.#loop.wake(key);
    return undefined;
  }

  /** While others were written it may have been stopped; that has woken the loop again. */
  #isAsItWas({ revision, record }: PodEntry): boolean {
    return this.#options.state.pod(record.namespace, record.name)?.revision === revision;
  }

  /** Binds the pod in the fleet's state; what writes that down is still to be done. */
  #place(pod: PodEntry, pass: Pass): Binding | undefined {
    const { unplaced, clock, state } = this.#options;
    const ties = claimTiesOf(pod, state);
    this.#nominations.release(pod);
    if (ties.problem !== undefined) {
      unplaced.set(pod, ties.problem);
      return undefined;
    }
    // Another pod takes the same claim to its node right now: where that is shows at the next look.
    if (ties.unbound.some((claim) => pass.claims.has(claim.key))) {
      pass.again = true;
      return undefined;
    }
    const left = state.drainingPods(pod.workloadKey).map(({ record }) => record.node);
    const spec = podSpecOf(pod.record, ties.nodes, left);
    const node = this.#fleet.schedule(spec);
    if (node === undefined) {
      this.#makeRoom(pod, spec, pass);
      return undefined;
    }
    this.#nominations.forget(pod.record.uid);
    unplaced.clear(pod.record.uid);
    for (const claim of ties.unbound) pass.claims.add(claim.key);
    const value = encodePod({ ...pod.record, node, boundAt: toTimestamp(clock.nowMs()) });
    const claims = bindClaims(ties, node);
    return {
      pod,
      node,
      compares: [{ kind: "modRevision", key: pod.key, revision: pod.revision }, ...claims.compares],
      ops: [{ kind: "put", key: pod.key, value }, ...claims.ops],
    };
  }

  #makeRoom(pod: PodEntry, spec: PodSpec, pass: Pass): void {
    const { unplaced, log } = this.#options;
    const preempting = this.#nominations.preempt(pod, spec);
    if (preempting === undefined) {
      unplaced.set(pod, this.#fleet.explain(spec).summary);
      return;
    }
    if (preempting.stops.length > 0) {
      log.info({ pod: pod.record.name, victims: preempting.stops.length }, preempting.message);
      // Its time to find a node begins anew: the room is on its way.
      unplaced.clear(pod.record.uid);
    }
    unplaced.set(pod, preempting.message);
    pass.stops.push(...preempting.stops);
  }

  async #write(part: readonly (Piece | Binding)[]): Promise<boolean> {
    const { store, state, log } = this.#options;
    const result = await store.txn(
      part.flatMap(({ compares }) => compares),
      part.flatMap(({ ops }) => ops),
    );
    await state.reached(result.revision);
    for (const piece of result.succeeded ? part : [])
      if ("pod" in piece) log.info({ pod: piece.pod.record.name, node: piece.node }, "pod bound");
    return result.succeeded;
  }

  /** Someone else changed one of the pods meanwhile, or the store failed: what was not written down did not happen. */
  #takeBack(open: ReadonlySet<Binding>): void {
    for (const { pod } of open) {
      const now = this.#options.state.pod(pod.record.namespace, pod.record.name);
      if (now === undefined || now.record.node === "") this.#fleet.unbind(fleetKey(pod.record));
    }
  }
}

function isLeaving(pod: PodEntry | undefined): pod is PodEntry {
  return pod?.record.stoppingSince !== undefined || pod?.record.drainingSince !== undefined;
}

interface Binding extends Piece {
  readonly pod: PodEntry;
  readonly node: string;
}

/** One look at all pods that wait. */
interface Pass {
  /** Claims that pods take along in it. */
  readonly claims: Set<string>;
  readonly stops: Piece[];
  again: boolean;
}

/** The most important first, then the oldest; those made at one time by name, as in `byBinding`. */
function byImportance(a: PodEntry, b: PodEntry): number {
  return b.record.priority - a.record.priority || createdMs(a) - createdMs(b) || (a.key < b.key ? -1 : 1);
}

/** As far as the records tell; pods that were bound at one time were so by their importance. */
function byBinding(a: PodEntry, b: PodEntry): number {
  const boundMs = (pod: PodEntry): number => toEpochMs(pod.record.boundAt) ?? 0;
  return boundMs(a) - boundMs(b) || byImportance(a, b);
}

function createdMs(pod: PodEntry): number {
  return toEpochMs(pod.record.createdAt) ?? 0;
}

/** Heartbeats change a node's entry often; placement only cares for these. */
function placementChanged(a: NodeEntry, b: NodeEntry): boolean {
  return (
    a.health.ready !== b.health.ready ||
    a.report !== b.report ||
    a.record.unschedulable !== b.record.unschedulable ||
    a.record.taints !== b.record.taints ||
    a.record.labels !== b.record.labels
  );
}

function nodeSpecOf(node: NodeEntry): NodeSpec {
  const report = node.report?.report;
  return {
    name: node.name,
    labels: labelsOf(node),
    allocatable: report?.allocatable ?? {},
    runtimeClasses: report?.runtimeClasses ?? [],
    unschedulable: node.record.unschedulable,
    taints: taintsOf(node),
  };
}

/** What operators put on it; and one of a kind of what its conditions call for, however many these are. */
function taintsOf(node: NodeEntry): Taint[] {
  const called = conditionTaints(node).filter(({ effect }) => effect === "NoSchedule");
  return [...taintsFrom(node.record.taints), ...taintsFrom(called)];
}
