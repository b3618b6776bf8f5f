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
import { type VisitRollout, visitConcerned, visitRolloutsOf, visitRolloutsOfPod } from "./concerned.ts";
import { EvaluationCache, FULL_EVALUATION_MS } from "./evaluation-cache.ts";
import { RolloutLook, type RolloutLookOptions, unsettled } from "./look.ts";
import { isTerminal } from "./progress.ts";
import type { ResourceProgress } from "./progress-input.ts";

export interface RolloutControllerOptions extends Omit<RolloutLookOptions, "time"> {
  readonly store: Store;
  readonly clock: Clock;
  /** Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
}

/** Finished rollouts kept per namespace; older ones and their apply ids are forgotten. */
const MAX_FINISHED_PER_NAMESPACE = 500;

/** Rollouts are evaluated by this factor more rarely than workloads, because their evaluations only describe the progress. */
const FEWER_EVALUATIONS = 4;

/** Timers are not exact, and an evaluation that is a little early must not cause the next one at once. */
const MIN_DELAY_MS = 10;

/** The limit of rollouts deleted at once. With the apply id of each this is half of what one transaction takes. */
const FORGOTTEN_AT_ONCE = 50;

/** Follows each unfinished rollout, stores how its resources ended, and notifies watchers. */
export class RolloutController {
  readonly #options: RolloutControllerOptions;
  readonly #loop: Loop;
  readonly #retention: Loop;
  readonly #evaluations = new EvaluationCache();
  readonly #progress = new Map<string, readonly ResourceProgress[]>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #look: RolloutLook;

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    const time = options.time ?? new ActingTime({ clock: options.clock });
    this.#look = new RolloutLook({ ...options, time });
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

  /** Returns the progress of each resource, in the request's order; undefined for an unknown rollout. */
  progress(id: string): readonly ResourceProgress[] | undefined {
    const rollout = this.#options.state.rollout(id);
    if (rollout === undefined) return undefined;
    if (rollout.record.finished) return rollout.record.resources.map((r) => ({ ...r }));
    return this.#progress.get(id) ?? this.#look.at(rollout).map(unsettled);
  }

  /** Calls after each change of the rollout's progress; returns how to stop. */
  watch(id: string, listener: () => void): () => void {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers.add(listener));
    return () => {
      watchers.delete(listener);
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    };
  }

  /** A pod's reason for waiting changed, which is not in the store. */
  wakeForPod(pod: PodEntry): void {
    visitRolloutsOfPod(pod, this.#options.state, this.#wake);
  }

  /** Wakes the rollouts of a workload whose hold has changed, because holds are not in the store. */
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
      visitConcerned(change, this.#options.state, this.#wake);
      if (change.kind === "rollout" && change.after?.record.finished === true)
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
      this.#tell(id);
      return undefined;
    }
    const nowMs = this.#options.clock.monotonicMs();
    const knownMs = this.#evaluations.fullMs(id);
    const fullMs = knownMs === undefined || nowMs - knownMs >= FULL_EVALUATION_MS ? nowMs : knownMs;
    const isFull = fullMs === nowMs;
    const looks = this.#look.at(rollout, (target) =>
      isFull ? undefined : this.#evaluations.get(id, target, nowMs),
    );
    const progress = looks.map((look) => look.progress);
    const ended = looks.some(({ target, progress: p }) => isTerminal(p.status) && !isTerminal(target.status));
    // It is kept first, so that changes during the write count.
    this.#evaluations.keep(id, looks, fullMs);
    if (ended) await this.#writeDown(rollout, progress);
    this.#progress.set(id, progress);
    this.#tell(id);
    const open = looks.filter(({ progress: p }) => !isTerminal(p.status));
    if (open.length === 0) return undefined;
    const dueMs = Math.min(...open.map((look) => look.dueMs));
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
    return this.#look.rolloutView(key);
  }

  async #writeDown(rollout: RolloutEntry, progress: readonly ResourceProgress[]): Promise<void> {
    const { clock, log } = this.#options;
    const now = toTimestamp(clock.nowMs());
    const resources = rollout.record.resources.map((target, index) => {
      const p = progress[index];
      if (p === undefined || !isTerminal(p.status) || isTerminal(target.status)) return target;
      return { ...target, status: p.status, message: p.message, reason: p.reason, finishedAt: now };
    });
    const finished = resources.every((r) => isTerminal(r.status));
    const value = encodeRecord(RolloutRecord, { ...rollout.record, resources, finished });
    const ops: Op[] = [{ kind: "put", key: rolloutKey(rollout.id), value }];
    const compare = { kind: "modRevision", key: rolloutKey(rollout.id), revision: rollout.revision } as const;
    await write({ compares: [compare], ops }, this.#options);
    if (finished)
      log.info({
        event: "rollout-finished",
        rollout: rollout.id,
        resources: progress.map((p) => ({ ...p })),
      });
  }

  /** Deletes old rollouts, including those that were finished from the start because their applies changed nothing. */
  async #forgetOld(namespace: string): Promise<number | undefined> {
    const { state } = this.#options;
    const finished = state.rollouts(namespace).filter((r) => r.record.finished);
    const surplus = Math.max(0, finished.length - MAX_FINISHED_PER_NAMESPACE);
    const oldest = finished.sort((a, b) => compareRollouts(a.record, b.record)).slice(0, surplus);
    for (let first = 0; first < oldest.length; first += FORGOTTEN_AT_ONCE) {
      const part = oldest.slice(first, first + FORGOTTEN_AT_ONCE).flatMap((r): Op[] => [
        { kind: "delete", key: rolloutKey(r.id) },
        { kind: "delete", key: applyKey(namespace, r.record.applyId) },
      ]);
      await tryWrite({ compares: [], ops: part }, this.#options);
    }
    return undefined;
  }

  #tell(id: string): void {
    for (const listener of this.#watchers.get(id) ?? []) listener();
  }
}
