import type { Log } from "@forage/common/log";
import {
  type Explanation,
  Fleet,
  podKey as fleetKey,
  type Profile,
  type RebalanceOptions,
  type RebalancePlan,
} from "@forage/scheduler";
import { ObjectFaults } from "../../faults/object-faults.ts";
import { batches, type StoreWrite } from "../../model/batches.ts";
import { encodePod } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { joined, tryWrite } from "../write.ts";
import { bindClaims, claimTiesOf } from "./claims.ts";
import { FleetView, subjectOf } from "./fleet-view.ts";
import { Intake } from "./intake.ts";
import { NewPodPlacement } from "./new-pods.ts";
import { Nominations } from "./nominations.ts";
import { byImportance } from "./order.ts";
import { NODES_PER_POD, Turn } from "./turn.ts";
import type { UnschedulablePods } from "./unschedulable-pods.ts";
import { type WaitingPod, WaitQueue } from "./wait-queue.ts";

export interface PlacementControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: EventRecorder;
  /** Nothing is placed before it resolves. Default: resolved. */
  readonly started?: Promise<void> | undefined;
  readonly profile: Profile;
  /** Receives the reasons why pods are unschedulable. */
  readonly unschedulable: UnschedulablePods;
  /** Runs the function after the pending work of the event loop. Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
}

const LOOP_KEY = "fleet";
/** The number of bindings that are written together: about as many as fit in one transaction. */
const PLACED_AT_ONCE = 1_000;
/** The cost of an explanation per node, relative to a search. */
const EXPLAIN_COST = 5;
/** The limit of nodes that are evaluated for outdated summaries in one pass. */
const REFRESHED_NODES = 20_000;

/** Binds pods to nodes. It applies each change of the view to the scheduler's fleet. */
export class PlacementController {
  /** Places new pods before they are written. */
  readonly newPods: NewPodPlacement;
  readonly #options: PlacementControllerOptions;
  readonly #fleet: Fleet;
  readonly #faults: ObjectFaults;
  readonly #view: FleetView;
  readonly #queue: WaitQueue;
  readonly #intake: Intake;
  readonly #nominations: Nominations;
  readonly #loop: Loop;

  constructor(options: PlacementControllerOptions) {
    const { state, clock, log, events } = options;
    this.#options = options;
    this.#fleet = new Fleet({ profile: options.profile });
    this.#faults = new ObjectFaults({ loop: "placement", log, events });
    this.#nominations = new Nominations({ fleet: this.#fleet, state, nowMs: clock.nowMs });
    this.#loop = new Loop({
      name: "placement",
      reconcile: () => this.#pass(),
      clock,
      log,
      started: options.started,
      state,
      wakeFor: (changes) => this.#follow(changes),
    });
    this.#view = new FleetView({ state, fleet: this.#fleet, faults: this.#faults });
    this.#queue = new WaitQueue({ fleet: this.#fleet, monotonicMs: clock.monotonicMs });
    const { unschedulable } = options;
    this.#intake = new Intake({
      state,
      clock,
      fleet: this.#fleet,
      queue: this.#queue,
      nominations: this.#nominations,
      faults: this.#faults,
      unschedulable,
    });
    this.newPods = new NewPodPlacement({
      ...options,
      fleet: this.#fleet,
      isIdle: () => this.#intake.isCurrent && !this.#queue.hasDue(),
      freed: () => this.#loop.wake(LOOP_KEY),
    });
    this.#loop.wake(LOOP_KEY);
  }

  /** Returns the pods to stop so that the rest is spread evenly. */
  pickVictims(pods: readonly PodEntry[], count: number): readonly PodEntry[] {
    if (count <= 0) return [];
    if (count >= pods.length) return pods;
    const workload = pods[0]?.workloadKey ?? "";
    const order = this.#fleet.pickVictims(workload, Number.MAX_SAFE_INTEGER);
    const rank = new Map(order.map((name, index) => [name as string, index]));
    const rankOf = (pod: PodEntry): number => rank.get(fleetKey(pod.record)) ?? -1;
    return [...pods].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, count);
  }

  /** Returns the reason that excludes each node. Undefined if the pod waits for something other than a node. */
  explain(pod: PodEntry): Explanation | undefined {
    const ties = claimTiesOf(pod, this.#options.state);
    if (ties.problem !== undefined) return undefined;
    return this.#faults.attempt(subjectOf(pod), () => this.#fleet.explain(podSpecOf(pod.record, ties.nodes)));
  }

  /** Returns moves of pods that would improve the placement. Moves nothing. */
  suggestMoves(options: RebalanceOptions): RebalancePlan {
    return this.#fleet.defragment(options);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #follow(changes: readonly Change[]): void {
    let wake = false;
    for (const change of changes) {
      const reached = this.#view.follow(change);
      const hasWork = this.#intake.follow(change);
      wake ||= hasWork || (reached && this.#queue.size > 0);
    }
    if (wake) this.#loop.wake(LOOP_KEY);
  }

  /** Runs one pass over the pods that are due. */
  async #pass(): Promise<number | undefined> {
    const turn = new Turn(this.#options.defer ?? setImmediate);
    await this.#intake.readChanges(() => turn.spend(NODES_PER_POD));
    const due = this.#queue.takeDue().sort((a, b) => byImportance(a.pod, b.pod));
    const { freed } = this.#fleet;
    const open = new Set<Binding>();
    const pass: Pass = { claims: new Set(), stops: new Map(), nominated: [], again: false, done: 0 };
    try {
      while (pass.done < due.length) await this.#placeSome(due, pass, open, turn);
      // A failed write means that a preemption was planned from an outdated view. The pods that it was for are tried again.
      let stopped = true;
      for (const part of batches([...pass.stops.values()])) stopped = (await this.#write(part)) && stopped;
      if (stopped) pass.nominated = [];
      else pass.again = true;
    } finally {
      this.#undo(open);
      for (const { pod } of open) this.#queue.retry(pod.record.uid);
      for (const { pod } of due.slice(pass.done)) this.#queue.retry(pod.record.uid);
      // The victims may not have been stopped.
      for (const uid of pass.nominated) this.#queue.retry(uid);
    }
    // A released reservation made room for pods that were tried before it.
    if (open.size > 0 || pass.again || this.#fleet.freed !== freed) this.#loop.wake(LOOP_KEY);
    await this.#refresh(turn);
    const nextMs = Math.min(this.#queue.nextMs() ?? Number.POSITIVE_INFINITY, this.#intake.nextMs());
    return nextMs === Number.POSITIVE_INFINITY ? undefined : nextMs;
  }

  /** Places due pods until enough bindings are collected for a write, and writes them. */
  async #placeSome(due: readonly WaitingPod[], pass: Pass, open: Set<Binding>, turn: Turn): Promise<void> {
    const placed: Binding[] = [];
    for (; pass.done < due.length && placed.length < PLACED_AT_ONCE && !turn.isOver; pass.done++) {
      const waiting = due[pass.done];
      if (waiting === undefined || !this.#isUnchanged(waiting.pod)) continue;
      turn.spendNow(NODES_PER_POD + (this.#queue.isHopeless(waiting.pod.record.uid) ? 0 : this.#fleet.size));
      const binding = this.#try(waiting, pass, turn);
      if (binding === undefined) continue;
      placed.push(binding);
      open.add(binding);
    }
    for (const part of batches(placed))
      if (await this.#write(part)) for (const binding of part) open.delete(binding);
    await turn.spend(0);
  }

  /**
   * Reports whether the pod is unchanged. It may have been stopped while others were written, which wakes the loop again.
   */
  #isUnchanged({ revision, record }: PodEntry): boolean {
    return this.#options.state.pod(record.namespace, record.name)?.revision === revision;
  }

  #try(waiting: WaitingPod, pass: Pass, turn: Turn): Binding | undefined {
    const { pod } = waiting;
    const { uid } = pod.record;
    try {
      // Another pod of the same class was just found unschedulable, so this one is too.
      if (this.#queue.isHopeless(uid)) return this.#noteWhy(waiting, turn);
      return this.#place(waiting, pass, turn);
    } catch (error) {
      // An error of one pod must not keep others from being placed. Undoes the part that reached the fleet.
      this.#fleet.unbind(fleetKey(pod.record));
      this.#nominations.forget(uid);
      this.#intake.reject(pod, error);
      return undefined;
    }
  }

  /** Binds the pod in the scheduler's fleet. The binding is written later. */
  #place({ pod, spec }: WaitingPod, pass: Pass, turn: Turn): Binding | undefined {
    const { unschedulable, clock, state } = this.#options;
    const { uid } = pod.record;
    const ties = claimTiesOf(pod, state);
    this.#nominations.release(pod);
    // An earlier pod of this pass binds one of the claims. The next pass sees to which node.
    if (ties.unbound.some((claim) => pass.claims.has(claim.key))) {
      this.#nominations.forget(uid);
      this.#queue.release(uid);
      this.#queue.retry(uid);
      pass.again = true;
      return undefined;
    }
    const node = this.#fleet.schedule(spec);
    if (node === undefined) {
      this.#makeRoom({ pod, spec }, pass, turn);
      return undefined;
    }
    this.#nominations.forget(uid);
    this.#queue.placed(uid);
    unschedulable.clear(uid);
    for (const claim of ties.unbound) pass.claims.add(claim.key);
    const value = encodePod({ ...pod.record, node, boundAt: toTimestamp(clock.nowMs()) });
    const claims = bindClaims(ties, node);
    return {
      pod,
      node,
      compares: [{ type: "mod-revision", key: pod.key, revision: pod.revision }, ...claims.compares],
      ops: [{ type: "put", key: pod.key, value }, ...claims.ops],
    };
  }

  #makeRoom({ pod, spec }: WaitingPod, pass: Pass, turn: Turn): void {
    const { unschedulable, log } = this.#options;
    const { uid } = pod.record;
    const preempting = this.#nominations.preempt(pod, spec);
    if (preempting === undefined) {
      this.#queue.failed(uid);
      this.#noteWhy({ pod, spec }, turn);
      return;
    }
    this.#queue.nominate(uid, this.#nominations.nodeFor(uid) ?? "");
    if (preempting.stops.length > 0) {
      const victims = preempting.stops.length;
      log.info({ event: "pods-preempted", pod: pod.record.name, victims, message: preempting.message });
      // The placement deadline starts over, because room will become free.
      unschedulable.clear(uid);
      pass.nominated.push(uid);
    }
    unschedulable.set(pod, preempting.message);
    for (const { key, write } of preempting.stops) pass.stops.set(key, write);
  }

  /** Records that the pod is unschedulable, with the reason of its class. */
  #noteWhy(waiting: WaitingPod, turn: Turn): undefined {
    const { uid } = waiting.pod.record;
    if (this.#queue.summaryOf(uid) === undefined) this.#explain(waiting, turn);
    this.#options.unschedulable.set(waiting.pod, this.#queue.summaryOf(uid) ?? "");
  }

  /** Records why the pods of one class are unschedulable. */
  #explain({ pod, spec }: WaitingPod, turn: Turn): void {
    turn.spendNow(this.#fleet.size * EXPLAIN_COST);
    const { summary } = this.#fleet.explain(spec);
    for (const { pod: other } of this.#queue.explain(pod.record.uid, summary))
      if (this.#options.unschedulable.get(other.record.uid) !== undefined)
        this.#options.unschedulable.set(other, summary);
  }

  /** Updates some of the outdated reasons. */
  async #refresh(turn: Turn): Promise<void> {
    let nodes = 0;
    for (const waiting of this.#queue.outdated()) {
      if (nodes > 0 && nodes + this.#fleet.size > REFRESHED_NODES) return;
      nodes += this.#fleet.size;
      try {
        this.#explain(waiting, turn);
      } catch (error) {
        this.#intake.reject(waiting.pod, error);
      }
      await turn.spend(0);
    }
  }

  async #write(part: readonly (StoreWrite | Binding)[]): Promise<boolean> {
    const { log } = this.#options;
    const succeeded = await tryWrite(joined(part), this.#options);
    for (const write of succeeded ? part : [])
      if ("pod" in write) log.info({ event: "pod-bound", pod: write.pod.record.name, node: write.node });
    return succeeded;
  }

  /** Undoes bindings that were not written, because a pod was changed by another writer or the store failed. */
  #undo(open: ReadonlySet<Binding>): void {
    for (const { pod } of open) {
      const now = this.#options.state.pod(pod.record.namespace, pod.record.name);
      if (now === undefined || now.record.node === "") this.#fleet.unbind(fleetKey(pod.record));
    }
  }
}

interface Binding extends StoreWrite {
  readonly pod: PodEntry;
  readonly node: string;
}

/** The state of one pass over due pods. */
interface Pass {
  /** Keys of the claims that pods bind in this pass. */
  readonly claims: Set<string>;
  /** The writes that stop victims, by the victim's key, because two pods may have the same victim. */
  readonly stops: Map<string, StoreWrite>;
  /** The uids of the pods that reserved a place in this pass. */
  nominated: string[];
  again: boolean;
  /** The number of tried pods. */
  done: number;
}
