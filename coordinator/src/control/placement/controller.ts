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
import { Nominations } from "./nominations.ts";
import { byImportance } from "./order.ts";
import type { UnschedulablePods } from "./unschedulable-pods.ts";
import { type Waiting, WaitQueue } from "./wait-queue.ts";

export interface PlacementControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: EventRecorder;
  /** The controller reconciles nothing before this resolves. Default: at once. */
  readonly started?: Promise<void> | undefined;
  readonly profile: Profile;
  /** Takes note of why pods are not placed. */
  readonly unschedulable: UnschedulablePods;
  /** Runs it soon, after what is being done now. Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
}

const LOOP_KEY = "fleet";
/** Bindings that are written together: one transaction's worth of records. */
const PLACED_AT_ONCE = 1_000;
/** The number of nodes evaluated before heartbeats are read and calls are answered: about 10 ms of work. */
const NODES_PER_TURN = 100_000;
/** An explanation asks a node this many times as much as a search. */
const EXPLAIN_COST = 5;
/** Summaries that are brought up to date in one pass ask at most so many nodes. */
const REFRESHED_NODES = 20_000;

/** Binds pods to nodes. The fleet's state follows the view, change by change. */
export class PlacementController {
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
    this.#loop.wake(LOOP_KEY);
  }

  /** Returns the pods to stop for an even spread of the rest. */
  pickVictims(pods: readonly PodEntry[], count: number): readonly PodEntry[] {
    if (count <= 0) return [];
    if (count >= pods.length) return pods;
    const workload = pods[0]?.workloadKey ?? "";
    const order = this.#fleet.pickVictims(workload, Number.MAX_SAFE_INTEGER);
    const rank = new Map(order.map((name, index) => [name as string, index]));
    const rankOf = (pod: PodEntry): number => rank.get(fleetKey(pod.record)) ?? -1;
    return [...pods].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, count);
  }

  /** Returns each node with the reason that excludes it. Undefined if the pod waits for something else than a node. */
  explain(pod: PodEntry): Explanation | undefined {
    const ties = claimTiesOf(pod, this.#options.state);
    if (ties.problem !== undefined) return undefined;
    return this.#faults.attempt(subjectOf(pod), () => this.#fleet.explain(podSpecOf(pod.record, ties.nodes)));
  }

  /** Moves that would make things better; makes none. */
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
      const asked = this.#intake.follow(change);
      wake ||= asked || (reached && this.#queue.size > 0);
    }
    if (wake) this.#loop.wake(LOOP_KEY);
  }

  /** One pass over the pods that may have a node now. */
  async #pass(): Promise<number | undefined> {
    const turn = new Turn(this.#options.defer ?? setImmediate);
    await this.#intake.take(() => turn.spend(NODES_PER_POD));
    const due = this.#queue.takeDue().sort((a, b) => byImportance(a.pod, b.pod));
    const { freed } = this.#fleet;
    const open = new Set<Binding>();
    const pass: Pass = { claims: new Set(), stops: new Map(), nominated: [], again: false, done: 0 };
    try {
      while (pass.done < due.length) await this.#placeSome(due, pass, open, turn);
      // A failed write means that a preemption was planned from an outdated view. Its preemptors are tried again.
      let stopped = true;
      for (const part of batches([...pass.stops.values()])) stopped = (await this.#write(part)) && stopped;
      if (stopped) pass.nominated = [];
      else pass.again = true;
    } finally {
      this.#takeBack(open);
      for (const { pod } of open) this.#queue.retry(pod.record.uid);
      for (const { pod } of due.slice(pass.done)) this.#queue.retry(pod.record.uid);
      // Their victims may not have been stopped.
      for (const uid of pass.nominated) this.#queue.retry(uid);
    }
    // A pod that gave up the place it held has made room for those that had their turn before it.
    if (open.size > 0 || pass.again || this.#fleet.freed !== freed) this.#loop.wake(LOOP_KEY);
    await this.#refresh(turn);
    const nextMs = Math.min(this.#queue.nextMs() ?? Number.POSITIVE_INFINITY, this.#intake.nextMs());
    return nextMs === Number.POSITIVE_INFINITY ? undefined : nextMs;
  }

  /** Places pods until enough are bound to be written, and writes them. */
  async #placeSome(due: readonly Waiting[], pass: Pass, open: Set<Binding>, turn: Turn): Promise<void> {
    const placed: Binding[] = [];
    for (; pass.done < due.length && placed.length < PLACED_AT_ONCE && !turn.isOver; pass.done++) {
      const waiting = due[pass.done];
      if (waiting === undefined || !this.#isAsItWas(waiting.pod)) continue;
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
   * Reports whether the pod is unchanged. It may have been stopped while others were written; that has woken the loop again.
   */
  #isAsItWas({ revision, record }: PodEntry): boolean {
    return this.#options.state.pod(record.namespace, record.name)?.revision === revision;
  }

  #try(waiting: Waiting, pass: Pass, turn: Turn): Binding | undefined {
    const { pod } = waiting;
    const { uid } = pod.record;
    try {
      // Another pod of its class has just had no node: this one has none either.
      if (this.#queue.isHopeless(uid)) return this.#noteWhy(waiting, turn);
      return this.#place(waiting, pass, turn);
    } catch (error) {
      // The error must not keep other pods from being placed. The part that reached the fleet is undone.
      this.#fleet.unbind(fleetKey(pod.record));
      this.#nominations.forget(uid);
      this.#intake.reject(pod, error);
      return undefined;
    }
  }

  /** Binds the pod in the fleet's state; what writes that down is still to be done. */
  #place({ pod, spec }: Waiting, pass: Pass, turn: Turn): Binding | undefined {
    const { unschedulable, clock, state } = this.#options;
    const { uid } = pod.record;
    const ties = claimTiesOf(pod, state);
    this.#nominations.release(pod);
    // Another pod takes the same claim to its node right now: where that is shows at the next look.
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
      compares: [{ kind: "modRevision", key: pod.key, revision: pod.revision }, ...claims.compares],
      ops: [{ kind: "put", key: pod.key, value }, ...claims.ops],
    };
  }

  #makeRoom({ pod, spec }: Waiting, pass: Pass, turn: Turn): void {
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
      // The time to find a node starts over, because room will become free.
      unschedulable.clear(uid);
      pass.nominated.push(uid);
    }
    unschedulable.set(pod, preempting.message);
    for (const { key, write } of preempting.stops) pass.stops.set(key, write);
  }

  /** The pod has no node, for the reason that is known of its class. */
  #noteWhy(waiting: Waiting, turn: Turn): undefined {
    const { uid } = waiting.pod.record;
    if (this.#queue.summaryOf(uid) === undefined) this.#explain(waiting, turn);
    this.#options.unschedulable.set(waiting.pod, this.#queue.summaryOf(uid) ?? "");
  }

  /** Notes why the pods of one class have no node. */
  #explain({ pod, spec }: Waiting, turn: Turn): void {
    turn.spendNow(this.#fleet.size * EXPLAIN_COST);
    const { summary } = this.#fleet.explain(spec);
    for (const { pod: other } of this.#queue.explain(pod.record.uid, summary))
      if (this.#options.unschedulable.get(other.record.uid) !== undefined)
        this.#options.unschedulable.set(other, summary);
  }

  /** Updates some of the reasons for which pods wait for a node. */
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

  /** Someone else changed one of the pods meanwhile, or the store failed: what was not written down did not happen. */
  #takeBack(open: ReadonlySet<Binding>): void {
    for (const { pod } of open) {
      const now = this.#options.state.pod(pod.record.namespace, pod.record.name);
      if (now === undefined || now.record.node === "") this.#fleet.unbind(fleetKey(pod.record));
    }
  }
}

/** The cost of handling a pod apart from evaluating nodes, as a number of nodes. */
const NODES_PER_POD = 20;

interface Binding extends StoreWrite {
  readonly pod: PodEntry;
  readonly node: string;
}

/** One pass over pods that wait. */
interface Pass {
  /** Claims that pods take along in it. */
  readonly claims: Set<string>;
  /** By the key of the pod to stop, because two waiting pods may need the same pod to stop. */
  readonly stops: Map<string, StoreWrite>;
  /** The uids of pods with nominated victims. */
  nominated: string[];
  again: boolean;
  /** The number of pods that have been tried. */
  done: number;
}

/** A share of the process's time, counted by the nodes that are asked. */
class Turn {
  readonly #defer: (run: () => void) => void;
  #nodes = 0;

  constructor(defer: (run: () => void) => void) {
    this.#defer = defer;
  }

  get isOver(): boolean {
    return this.#nodes >= NODES_PER_TURN;
  }

  spendNow(nodes: number): void {
    this.#nodes += nodes;
  }

  /** Lets others have the process once the share is used up. */
  async spend(nodes: number): Promise<void> {
    this.#nodes += nodes;
    if (!this.isOver) return;
    this.#nodes = 0;
    const defer = this.#defer;
    await new Promise<void>((resolve) => defer(resolve));
  }
}
