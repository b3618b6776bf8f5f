import { type BackOff, backOffMs } from "@forage/common/back-off";
import { messageOf } from "@forage/common/message-of";
import type { Fleet } from "@forage/scheduler";
import type { ObjectFaults } from "../../faults/object-faults.ts";
import { PodSpecs } from "../../model/pod-spec.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry } from "../../state/entries.ts";
import type { Clock } from "../../time/clock.ts";
import { claimTiesOf } from "./claims.ts";
import { subjectOf } from "./fleet-view.ts";
import type { Nominations } from "./nominations.ts";
import type { UnschedulablePods } from "./unschedulable-pods.ts";
import type { WaitQueue } from "./wait-queue.ts";

export interface IntakeOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly fleet: Fleet;
  readonly queue: WaitQueue;
  readonly nominations: Nominations;
  readonly faults: ObjectFaults;
  readonly unschedulable: UnschedulablePods;
}

interface Failed {
  readonly pod: PodEntry;
  readonly failures: number;
  retryAtMs: number;
}

/** The delay of a retry after an error in handling a pod, doubling from the first value to the second. */
const RETRY: BackOff = { baseMs: 1_000, capMs: 300_000 };

/**
 * Decides which pods wait for a node, and with which constraints. It reads the pod, its claims and its workload, and
 * updates the queue. A pod that can't be handled is not queued until it changes or its back-off has passed.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #specs = new PodSpecs();
  /** Pods to read again, by key. */
  readonly #unread = new Map<string, PodEntry>();
  /** Pods whose handling failed, by uid. */
  readonly #failed = new Map<string, Failed>();
  /** The waiting pods of each workload, by key. Their constraints depend on which pods of the workload leave nodes. */
  readonly #waiting = new Map<string, Map<string, PodEntry>>();

  constructor(options: IntakeOptions) {
    this.#options = options;
    for (const pod of options.state.unboundPods()) this.#read(pod);
  }

  /** Whether the queue contains all waiting pods as they are now. */
  get isCurrent(): boolean {
    return this.#unread.size === 0;
  }

  /** Applies the change. Returns whether there are pods to place or to read. */
  follow(change: Change): boolean {
    switch (change.type) {
      case "pod":
        return this.#followPod(change.before, change.after);
      case "object": {
        const name = (change.after ?? change.before)?.name;
        if (name?.kind !== "claim") return false;
        const waiting = this.#options.state.podsReferring(name).filter(isWaiting);
        for (const pod of waiting) this.#unread.set(pod.key, pod);
        return waiting.length > 0;
      }
      case "node": {
        const { queue, nominations } = this.#options;
        const uids = nominations.on((change.after ?? change.before)?.name ?? "");
        for (const uid of uids) queue.retry(uid);
        return uids.length > 0;
      }
      default:
        return false;
    }
  }

  /** Updates the queue for the changed pods. Awaits `spend` for each pod. */
  async readChanges(spend: () => Promise<void>): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    for (const failed of this.#failed.values()) {
      if (failed.retryAtMs > nowMs) continue;
      failed.retryAtMs = Number.POSITIVE_INFINITY;
      this.#unread.set(failed.pod.key, failed.pod);
    }
    for (const [key, { record }] of this.#unread) {
      this.#unread.delete(key);
      const pod = this.#options.state.pod(record.namespace, record.name);
      if (pod !== undefined && isWaiting(pod)) this.#enqueue(pod);
      await spend();
    }
  }

  /** Reports a pod that can't be handled, and retries it later. */
  reject(pod: PodEntry, error: unknown): void {
    const { queue, unschedulable, faults, clock } = this.#options;
    const { uid } = pod.record;
    const failures = (this.#failed.get(uid)?.failures ?? 0) + 1;
    this.#failed.set(uid, { pod, failures, retryAtMs: clock.monotonicMs() + backOffMs(failures, RETRY) });
    queue.delete(uid);
    faults.report(subjectOf(pod), error);
    unschedulable.set(pod, `it can't be evaluated: ${messageOf(error)}`);
  }

  /** Returns the milliseconds until the next failed pod is retried. */
  nextMs(): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const { retryAtMs } of this.#failed.values()) atMs = Math.min(atMs, retryAtMs);
    return Math.max(1, atMs - this.#options.clock.monotonicMs());
  }

  #followPod(before: PodEntry | undefined, after: PodEntry | undefined): boolean {
    if (before?.record === after?.record) return false;
    const woken = this.#wakeNominated(before, after);
    // The replacement of a pod that leaves its node must not be placed there.
    const leaving = leavingNode(before) !== leavingNode(after);
    const siblings = leaving ? this.#waiting.get((after ?? before)?.workloadKey ?? "") : undefined;
    for (const [key, pod] of siblings ?? []) this.#unread.set(key, pod);
    if (after !== undefined && isWaiting(after)) {
      this.#read(after);
      return true;
    }
    if (before !== undefined && isWaiting(before)) this.#forget(before, after);
    return woken || (siblings?.size ?? 0) > 0;
  }

  /** Wakes pods that wait for this one as a victim: it was removed, or its stop was cancelled. */
  #wakeNominated(before: PodEntry | undefined, after: PodEntry | undefined): boolean {
    const { queue, nominations } = this.#options;
    const uids = before === undefined ? [] : nominations.waitingFor(before.record.uid);
    // A requested stop is no reason to wake them.
    if (before?.record.stoppingSince === undefined && after?.record.stoppingSince !== undefined) return false;
    for (const uid of uids) queue.retry(uid);
    return uids.length > 0;
  }

  #read(pod: PodEntry): void {
    this.#unread.set(pod.key, pod);
    // The change may have corrected the error.
    this.#failed.delete(pod.record.uid);
    const siblings = this.#waiting.get(pod.workloadKey) ?? new Map();
    this.#waiting.set(pod.workloadKey, siblings.set(pod.key, pod));
  }

  #forget(pod: PodEntry, after: PodEntry | undefined): void {
    const { queue, nominations, unschedulable, faults } = this.#options;
    const { uid } = pod.record;
    const siblings = this.#waiting.get(pod.workloadKey);
    siblings?.delete(pod.key);
    if (siblings?.size === 0) this.#waiting.delete(pod.workloadKey);
    this.#unread.delete(pod.key);
    this.#failed.delete(uid);
    // A bound pod needs no reservation any more.
    if (after?.record.node === undefined || after.record.node === "") nominations.release(pod);
    nominations.forget(uid);
    queue.delete(uid);
    faults.clear(subjectOf(pod));
    unschedulable.clear(uid);
  }

  #enqueue(pod: PodEntry): void {
    const { state, fleet, queue, nominations, unschedulable } = this.#options;
    const { uid } = pod.record;
    try {
      const ties = claimTiesOf(pod, state);
      if (ties.problem !== undefined) {
        nominations.release(pod);
        nominations.forget(uid);
        queue.delete(uid);
        unschedulable.set(pod, ties.problem);
        return;
      }
      const left = state.drainingPods(pod.workloadKey).map(({ record }) => record.node);
      const spec = this.#specs.of(pod.record, ties.nodes, left);
      queue.set(pod, spec, fleet.classKey(spec));
      const summary = queue.isHopeless(uid) ? queue.summaryOf(uid) : undefined;
      if (summary !== undefined) unschedulable.set(pod, summary);
    } catch (error) {
      nominations.release(pod);
      nominations.forget(uid);
      this.reject(pod, error);
    }
  }
}

function isWaiting({ record }: PodEntry): boolean {
  return record.node === "" && record.stoppingSince === undefined;
}

/** Returns the node that the pod is marked to leave. Undefined once it is stopping. */
function leavingNode(pod: PodEntry | undefined): string | undefined {
  if (pod?.record.drainingSince === undefined || pod.record.stoppingSince !== undefined) return undefined;
  return pod.record.node;
}
