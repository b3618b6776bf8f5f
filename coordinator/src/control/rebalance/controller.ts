import type { Log } from "@forage/common/log";
import type { PodKey, RebalanceOptions, RebalancePlan } from "@forage/scheduler";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { isReady } from "../../endpoints/readiness.ts";
import { ObjectFaults } from "../../faults/object-faults.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey } from "../../model/keys.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { unmark } from "../drain/controller.ts";
import { Loop } from "../loop.ts";
import { rewritePod } from "../pod-writes.ts";
import { tryWrite } from "../write.ts";
import { isSettled, type Movable, whyNotMoved } from "./movable.ts";

export type RebalanceGoal = RebalanceOptions["goal"];

/** The times at which the coordinator rebalances automatically. */
export interface RebalanceSchedule {
  readonly intervalMs: number;
  readonly maxMoves: number;
  readonly goal: RebalanceGoal;
}

export interface RebalanceControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly suggest: (options: RebalanceOptions) => RebalancePlan;
  /** The automatic rebalancing. Undefined: pods are moved on request only. */
  readonly rebalance?: RebalanceSchedule | undefined;
}

/** The result of starting a move. "later": another pod of its workload is moving or starting. */
export type MoveStart =
  | { readonly type: "begun" }
  | { readonly type: "later" | "refused"; readonly why: string };

/** The time within which the replacement has to be ready. Otherwise the move is cancelled. */
export const MOVE_DEADLINE_MS = 180_000;

/** The delay before the cancellation of a move is retried. */
const RETRY_MS = 5_000;

const MOVES_KEY = "moves";
const SCHEDULE_KEY = "schedule";

/** Moves pods to better nodes. The workload controller creates a replacement and then stops the moved pod. */
export class RebalanceController {
  readonly #options: RebalanceControllerOptions;
  readonly #faults: ObjectFaults;
  readonly #loop: Loop;
  readonly #time: ActingTime;
  #lastMs: number;
  /** The deadlines of moves, by uid of the pod. */
  #deadlines: ReadonlyMap<string, number> = new Map();

  constructor(options: RebalanceControllerOptions) {
    this.#options = options;
    this.#faults = new ObjectFaults({ loop: "rebalance", log: options.log, events: options.events });
    this.#time = options.time ?? new ActingTime({ clock: options.clock });
    this.#lastMs = options.clock.monotonicMs();
    this.#loop = new Loop({
      name: "rebalance",
      reconcile: (key) => (key === MOVES_KEY ? this.#cancelOverdue() : this.#runScheduled()),
      clock: options.clock,
      leastDelayMs: this.#time.leastDelayMs,
      log: options.log,
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    this.#loop.wake(MOVES_KEY);
    if (options.rebalance !== undefined) this.#loop.wake(SCHEDULE_KEY);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** Returns the moves that are possible now, and their benefit. Moves nothing. */
  suggest(goal: RebalanceGoal, maxMoves: number): RebalancePlan {
    const movable = (key: PodKey): boolean => {
      const known = this.#movable(key);
      return known !== undefined && whyNotMoved(known) === undefined && isSettled(known);
    };
    return this.#options.suggest({ goal, maxMoves, movable });
  }

  /** Begins a move, unless it is impossible permanently or at the moment. */
  async move(key: string, why: string): Promise<MoveStart> {
    const { clock, events, log } = this.#options;
    const known = this.#movable(key);
    if (known === undefined) return { type: "refused", why: "it no longer exists" };
    const hindrance = whyNotMoved(known);
    if (hindrance !== undefined) return { type: "refused", why: hindrance };
    const { pod } = known;
    const { record } = pod;
    if (!isSettled(known))
      return { type: "later", why: `not all replicas of ${record.workloadName} are ready` };
    const marked = { ...record, drainingSince: toTimestamp(clock.nowMs()), drainCause: "rebalance" };
    if (!(await tryWrite(rewritePod(pod, marked), this.#options)))
      return { type: "later", why: "it was changed at the same time" };
    log.info({ event: "pod-moved", pod: record.name, node: record.node, why });
    const { namespace, name, node } = record;
    const message = `leaves node ${node} once its replacement is ready elsewhere: ${why}`;
    const about = { namespace, kind: "pod", name, node, workload: pod.workloadKey };
    events.record({ ...about, type: "Normal", reason: "Rebalanced", message });
    return { type: "begun" };
  }

  #movable(key: string): Movable | undefined {
    const { state } = this.#options;
    const pod = this.#find(key);
    if (pod === undefined) return undefined;
    const { namespace, workloadKind, workloadName } = pod.record;
    return {
      pod,
      resource: state.resource(resourceKey(namespace, workloadKind, workloadName)),
      siblings: state.podsOfWorkload(pod.workloadKey),
      isReady: (it) => isReady(it, (node) => state.node(node)?.health.ready ?? false),
    };
  }

  #find(key: string): PodEntry | undefined {
    const [namespace = "", name = ""] = key.split("/");
    return this.#options.state.pod(namespace, name);
  }

  #wakeFor(changes: readonly Change[]): void {
    const moves = changes.some(
      ({ type, after }) => type === "pod" && after?.record.drainCause === "rebalance",
    );
    if (moves) this.#loop.wake(MOVES_KEY);
  }

  #moving(): PodEntry[] {
    return this.#options.state.drainingPods().filter(({ record }) => record.drainCause === "rebalance");
  }

  async #cancelOverdue(): Promise<number | undefined> {
    const nowMs = this.#time.monotonicMs();
    const moving = this.#moving();
    this.#deadlines = new Map(moving.map((pod) => [pod.record.uid, this.#deadlineMs(pod)]));
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pod of moving) {
      const inMs = this.#deadlineMs(pod) - nowMs;
      if (inMs > 0) nextMs = Math.min(nextMs, inMs);
      else if (!(await this.#cancel(pod))) nextMs = Math.min(nextMs, RETRY_MS);
    }
    return nextMs === Number.POSITIVE_INFINITY ? undefined : nextMs;
  }

  /** Returns the deadline by the acting time, so a change of the wall clock has no effect. */
  #deadlineMs({ record }: PodEntry): number {
    const known = this.#deadlines.get(record.uid);
    if (known !== undefined) return known;
    const { nowMs, since } = this.#time.now();
    const agoMs = Math.max(0, nowMs - since(toEpochMs(record.drainingSince) ?? 0));
    return this.#time.monotonicMs() + MOVE_DEADLINE_MS - agoMs;
  }

  /** Cancels a move. Returns false after an error, so that the caller continues with the other moves. */
  async #cancel(pod: PodEntry): Promise<boolean> {
    const { namespace, name } = pod.record;
    try {
      await tryWrite(unmark(pod), this.#options);
      return true;
    } catch (error) {
      this.#faults.report({ kind: "pod", namespace, name }, error);
      return false;
    }
  }

  async #runScheduled(): Promise<number | undefined> {
    const { rebalance, clock, log } = this.#options;
    if (rebalance === undefined) return undefined;
    const waitMs = this.#lastMs + rebalance.intervalMs - clock.monotonicMs();
    if (waitMs > 0) return waitMs;
    this.#lastMs = clock.monotonicMs();
    // Waits until the previous moves have ended.
    if (this.#moving().length > 0) return rebalance.intervalMs;
    const plan = this.suggest(rebalance.goal, rebalance.maxMoves);
    log.info({ event: "rebalance-planned", moves: plan.moves.length, gain: plan.summary });
    for (const { pod } of plan.moves) {
      const [namespace = "", name = ""] = pod.split("/");
      await this.move(pod, plan.summary).catch((error: unknown) =>
        this.#faults.report({ kind: "pod", namespace, name }, error),
      );
    }
    return rebalance.intervalMs;
  }
}
