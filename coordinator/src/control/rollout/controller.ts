import type { Log } from "@forage/common/log";
import { RolloutRecord } from "@forage/proto/forage/store/v1/store";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { encodeRecord } from "../../model/codec.ts";
import { applyKey, rolloutKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { Change, PodEntry, RolloutEntry } from "../../state/entries.ts";
import { compareRollouts } from "../../state/rollout-order.ts";
import type { Op, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import type { RolloutView } from "../workload/rollout-view.ts";
import { tryWrite, write } from "../write.ts";
import { yieldMsOf } from "../yield-time.ts";
import { type VisitRollout, visitAffected, visitRolloutsOf, visitRolloutsOfPod } from "./concerned.ts";
import { EvaluationCache, FULL_EVALUATION_MS } from "./evaluation-cache.ts";
import { isTerminal } from "./progress.ts";
import type { ResourceProgress } from "./progress-input.ts";
import { RolloutEvaluator, type RolloutEvaluatorOptions, unsettled } from "./rollout-evaluator.ts";

export interface RolloutControllerOptions extends Omit<RolloutEvaluatorOptions, "time"> {
  readonly store: Store;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
}

/** The number of finished rollouts that are kept per namespace. Older ones and their apply ids are deleted. */
const MAX_FINISHED_PER_NAMESPACE = 500;

/**
 * The factor by which rollouts are evaluated less often than workloads, because their evaluations only describe the
 * progress.
 */
const FEWER_EVALUATIONS = 4;

/**
 * The shortest delay of an evaluation. Timers are not exact, and an evaluation that is slightly early must not cause the
 * next one at once.
 */
const MIN_DELAY_MS = 10;

/** The limit of rollouts deleted in one transaction. With the apply ids it uses half of the transaction's limit. */
const FORGOTTEN_AT_ONCE = 50;

/** Tracks the progress of each unfinished rollout, stores the final states of its resources, and notifies watchers. */
export class RolloutController {
  readonly #options: RolloutControllerOptions;
  readonly #loop: Loop;
  readonly #retention: Loop;
  readonly #evaluations = new EvaluationCache();
  readonly #progress = new Map<string, readonly ResourceProgress[]>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #evaluator: RolloutEvaluator;

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    const time = options.time ?? new ActingTime({ clock: options.clock });
    this.#evaluator = new RolloutEvaluator({ ...options, time });
    this.#loop = new Loop({
      name: "rollout",
      reconcile: (id) => this.#reconcile(id),
      clock: options.clock,
      leastDelayMs: time.leastDelayMs,
      log: options.log,
      restMs: (id) => this.#restMs(id),
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    this.#retention = new Loop({
      name: "rollout-retention",
      reconcile: (namespace) => this.#forgetOld(namespace),
      clock: options.clock,
      log: options.log,
    });
    for (const { id } of options.state.activeRollouts()) this.#loop.wake(id);
    for (const { record } of options.state.rollouts()) this.#retention.wake(record.namespace);
  }

  /** Returns the progress of each resource in the request's order. Undefined for an unknown rollout. */
  progress(id: string): readonly ResourceProgress[] | undefined {
    const rollout = this.#options.state.rollout(id);
    if (rollout === undefined) return undefined;
    if (rollout.record.finished) return rollout.record.resources.map((r) => ({ ...r }));
    return this.#progress.get(id) ?? this.#evaluator.at(rollout).map(unsettled);
  }

  /** Calls the listener after each change of the rollout's progress. Returns a function that ends the watch. */
  watch(id: string, listener: () => void): () => void {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers.add(listener));
    return () => {
      watchers.delete(listener);
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    };
  }

  /** Wakes the rollouts of the pod after a change of the reason why it is unschedulable, which is not stored. */
  wakeForPod(pod: PodEntry): void {
    visitRolloutsOfPod(pod, this.#options.state, this.#wake);
  }

  /** Wakes the rollouts of a workload after a change of its hold, which is not stored. */
  wakeForWorkload(key: string): void {
    const [namespace = "", kind = "", name = ""] = key.split("/");
    visitRolloutsOf({ namespace, kind, name }, this.#options.state, this.#wake);
  }

  async close(): Promise<void> {
    await this.#loop.close();
    await this.#retention.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      visitAffected(change, this.#options.state, this.#wake);
      if (change.type === "rollout" && change.after?.record.finished === true)
        this.#retention.wake(change.after.record.namespace);
    }
  }

  readonly #wake: VisitRollout = (id, outdated) => {
    if (outdated === "all") this.#evaluations.forget(id);
    else if (outdated !== "none") this.#evaluations.forgetResource(id, outdated.kind, outdated.name);
    this.#loop.wake(id);
  };

  async #reconcile(id: string): Promise<number | undefined> {
    const rollout = this.#options.state.rollout(id);
    if (rollout === undefined || rollout.record.finished) {
      this.#progress.delete(id);
      this.#evaluations.forget(id);
      this.#notify(id);
      return undefined;
    }
    const nowMs = this.#options.clock.monotonicMs();
    const knownMs = this.#evaluations.fullMs(id);
    const fullMs = knownMs === undefined || nowMs - knownMs >= FULL_EVALUATION_MS ? nowMs : knownMs;
    const isFull = fullMs === nowMs;
    const evaluations = this.#evaluator.at(rollout, (target) =>
      isFull ? undefined : this.#evaluations.get(id, target, nowMs),
    );
    const progress = evaluations.map((evaluation) => evaluation.progress);
    const ended = evaluations.some(
      ({ target, progress: p }) => isTerminal(p.status) && !isTerminal(target.status),
    );
    // The evaluation is stored in the cache first, so that a change during the write makes it outdated.
    this.#evaluations.keep(id, evaluations, fullMs);
    if (ended) await this.#store(rollout, progress);
    this.#progress.set(id, progress);
    this.#notify(id);
    const open = evaluations.filter(({ progress: p }) => !isTerminal(p.status));
    if (open.length === 0) return undefined;
    const dueMs = Math.min(...open.map((evaluation) => evaluation.dueMs));
    return Math.max(MIN_DELAY_MS, (isFull ? dueMs : Math.min(dueMs, fullMs + FULL_EVALUATION_MS)) - nowMs);
  }

  #restMs(id: string): number {
    const { state } = this.#options;
    const { namespace = "", resources = [] } = state.rollout(id)?.record ?? {};
    const pods = resources.map(({ kind, name }) => state.podCountOf(workloadKey(namespace, kind, name)));
    return FEWER_EVALUATIONS * yieldMsOf(pods.reduce((sum, count) => sum + count, 0));
  }

  /** Returns the state of a container service's rollout attempt, by the key of its workload. */
  rolloutView(key: string): RolloutView | undefined {
    return this.#evaluator.rolloutView(key);
  }

  async #store(rollout: RolloutEntry, progress: readonly ResourceProgress[]): Promise<void> {
    const { clock, log } = this.#options;
    const now = toTimestamp(clock.nowMs());
    const resources = rollout.record.resources.map((target, index) => {
      const p = progress[index];
      if (p === undefined || !isTerminal(p.status) || isTerminal(target.status)) return target;
      return { ...target, status: p.status, message: p.message, reason: p.reason, finishedAt: now };
    });
    const finished = resources.every((r) => isTerminal(r.status));
    const value = encodeRecord(RolloutRecord, { ...rollout.record, resources, finished });
    const ops: Op[] = [{ type: "put", key: rolloutKey(rollout.id), value }];
    const compare = {
      type: "mod-revision",
      key: rolloutKey(rollout.id),
      revision: rollout.revision,
    } as const;
    await write({ compares: [compare], ops }, this.#options);
    if (finished)
      log.info({
        event: "rollout-finished",
        rollout: rollout.id,
        resources: progress.map((p) => ({ ...p })),
      });
  }

  /** Deletes old rollouts, including those of applies without changes, which were finished from the start. */
  async #forgetOld(namespace: string): Promise<number | undefined> {
    const { state } = this.#options;
    const finished = state.rollouts(namespace).filter((r) => r.record.finished);
    const surplus = Math.max(0, finished.length - MAX_FINISHED_PER_NAMESPACE);
    const oldest = finished.sort((a, b) => compareRollouts(a.record, b.record)).slice(0, surplus);
    for (let first = 0; first < oldest.length; first += FORGOTTEN_AT_ONCE) {
      const part = oldest.slice(first, first + FORGOTTEN_AT_ONCE).flatMap((r): Op[] => [
        { type: "delete", key: rolloutKey(r.id) },
        { type: "delete", key: applyKey(namespace, r.record.applyId) },
      ]);
      await tryWrite({ compares: [], ops: part }, this.#options);
    }
    return undefined;
  }

  #notify(id: string): void {
    for (const listener of this.#watchers.get(id) ?? []) listener();
  }
}
