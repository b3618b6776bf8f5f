import type { Log } from "@forage/common/log";
import type { DrainRecord, NodeRecord } from "@forage/proto/forage/store/v1/store";
import { ActingTime, type TimeReading } from "../../acting-time/acting-time.ts";
import { ObjectFaults, podSubject } from "../../faults/object-faults.ts";
import type { StoreWrite } from "../../model/batches.ts";
import type { EventRecorder } from "../../model/event.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, NodeEntry, PodEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { rewriteNode } from "../eviction/record-node-conditions.ts";
import { Loop } from "../loop.ts";
import type { UnschedulablePods } from "../placement/unschedulable-pods.ts";
import { rewritePod, stopPod } from "../pod-writes.ts";
import { writeBatches } from "../write.ts";
import type { DrainPlan, RemainingPod } from "./drain-plan.ts";
import { drainStatus, isDrainActive } from "./drain-status.ts";

export interface DrainControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
}

/** A pod that has waited for this time is reported once as blocking the drain. */
const BLOCKED_MS = 60_000;
/** The limit of the wait until the next evaluation, because timers are limited to 24 days. */
const LONGEST_WAIT_MS = 86_400_000;

/**
 * Drains nodes. It marks the pods that have to leave; the workload controller replaces and stops them. The request is
 * stored in the node's record, so a drain continues after a restart of the coordinator.
 */
export class DrainController {
  readonly #options: DrainControllerOptions;
  readonly #time: ActingTime;
  readonly #faults: ObjectFaults;
  readonly #loop: Loop;
  /** The names of nodes that are being drained. */
  readonly #draining = new Set<string>();
  /** The uids of pods that were reported as blocking a drain. */
  readonly #reported = new Set<string>();

  constructor(options: DrainControllerOptions) {
    this.#options = options;
    this.#time = options.time ?? new ActingTime({ clock: options.clock });
    this.#faults = new ObjectFaults({ loop: "drain", log: options.log, events: options.events });
    this.#loop = new Loop({
      name: "drain",
      reconcile: (node) => this.#reconcile(node),
      clock: options.clock,
      leastDelayMs: this.#time.leastDelayMs,
      log: options.log,
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { name, record } of options.state.nodes())
      if (record.drain !== undefined) this.#loop.wake(name);
    for (const { record } of options.state.drainingPods()) this.#loop.wake(record.node);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const { type, before, after } of changes) {
      if (type === "node") this.#wakeForNode(before, after);
      if (type !== "pod" || this.#draining.size === 0) continue;
      const nodes = [before?.record.node, after?.record.node];
      for (const node of nodes) if (node !== undefined && this.#draining.has(node)) this.#loop.wake(node);
      // A marked pod has gone, so another pod of its workload may be marked.
      if (before?.record.drainingSince !== undefined)
        for (const node of this.#draining) this.#loop.wake(node);
    }
  }

  #wakeForNode(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const name = (after ?? before)?.name ?? "";
    if (after?.record.drain === undefined && before?.record.drain === undefined) return;
    const rebooted = before?.report?.bootId !== after?.report?.bootId;
    if (before?.record !== after?.record || before?.health.ready !== after?.health.ready || rebooted)
      this.#loop.wake(name);
  }

  async #reconcile(name: string): Promise<number | undefined> {
    const { state } = this.#options;
    const node = state.node(name);
    const drain = node?.record.drain;
    this.#draining.delete(name);
    if (node === undefined) return undefined;
    if (drain !== undefined && hasReturned(node, drain)) return this.#uncordon(node);
    if (!isDrainActive(drain)) return this.#release(name);
    this.#draining.add(name);
    const plan = drainStatus(node, drain, this.#options);
    for (const { pod, error } of plan.failed) this.#faults.report(podSubject(pod), error);
    const moment = this.#time.now();
    const { nowMs } = moment;
    const deadlineMs = deadlineOf(drain, moment);
    if (plan.waiting.length === 0) return this.#finish(node, drain, plan);
    if (deadlineMs <= nowMs) return this.#fail(node, drain, plan);
    await this.#write([
      ...this.#writes(plan.mark, (pod) => mark(pod, nowMs)),
      ...plan.stop.flatMap(({ pod, why }) => this.#writes([pod], () => stopPod(pod, why, nowMs))),
    ]);
    const blockedInMs = this.#reportBlocked(name, plan.waiting, nowMs);
    const nextMs = Math.min(deadlineMs - nowMs, blockedInMs);
    return nextMs === Number.POSITIVE_INFINITY ? undefined : Math.min(LONGEST_WAIT_MS, nextMs);
  }

  /** Removes the drain's marks, so that the pods stay on the node. */
  #release(name: string): Promise<undefined> {
    const pods = this.#options.state
      .podsOnNode(name)
      .filter(({ record }) => record.drainCause === "drain" && record.stoppingSince === undefined);
    return this.#write(this.#writes(pods, unmark));
  }

  /**
   * Returns the writes for these pods, without pods whose change can't be encoded, so that those don't block the others.
   */
  #writes(pods: readonly PodEntry[], pieceOf: (pod: PodEntry) => StoreWrite): StoreWrite[] {
    return pods.flatMap((pod) => this.#faults.attempt(podSubject(pod), () => pieceOf(pod)) ?? []);
  }

  #finish(node: NodeEntry, drain: DrainRecord, { staying }: DrainPlan): Promise<undefined> {
    const stay = staying.length === 0 ? "" : `; ${namesOf(staying)} stay, because no other node can run them`;
    this.#recordEvent(node.name, "Normal", "DrainFinished", `all pods have left the node${stay}`);
    const finishedAt = toTimestamp(this.#options.clock.nowMs());
    return this.#rewrite(node, { drain: { ...drain, finishedAt } });
  }

  #fail(node: NodeEntry, drain: DrainRecord, { waiting }: DrainPlan): Promise<undefined> {
    const failure = `the deadline passed with ${waiting.length} pods left: ${namesOf(waiting)}`;
    this.#recordEvent(node.name, "Warning", "DrainFailed", failure);
    return this.#rewrite(node, { drain: { ...drain, failure } });
  }

  #uncordon(node: NodeEntry): Promise<undefined> {
    this.#recordEvent(node.name, "Normal", "DrainOver", "the node has rebooted and accepts pods again");
    return this.#rewrite(node, { drain: undefined, unschedulable: false });
  }

  /**
   * Records an event for each pod that has blocked the drain for too long. Returns the milliseconds until the next event
   * may be due.
   */
  #reportBlocked(node: string, waiting: readonly RemainingPod[], nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { pod, why } of waiting) {
      const { uid, name, drainingSince } = pod.record;
      if (drainingSince === undefined || this.#reported.has(uid)) continue;
      const inMs = (toEpochMs(drainingSince) ?? nowMs) + BLOCKED_MS - nowMs;
      nextMs = Math.min(nextMs, Math.max(1, inMs));
      if (inMs > 0) continue;
      this.#reported.add(uid);
      this.#recordEvent(node, "Warning", "DrainBlocked", `pod ${name} still blocks the drain: ${why}`);
    }
    if (waiting.length === 0 || this.#reported.size > MAX_REPORTED) this.#reported.clear();
    return nextMs;
  }

  #recordEvent(node: string, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#options.log.info({ event: "drain-changed", node, reason, message });
    this.#options.events.record({ namespace: "", kind: "node", name: node, node, type, reason, message });
  }

  #rewrite(node: NodeEntry, change: Partial<NodeRecord>): Promise<undefined> {
    return this.#write([rewriteNode(node, { ...node.record, ...change })]);
  }

  async #write(writes: readonly StoreWrite[]): Promise<undefined> {
    await writeBatches(writes, this.#options);
  }
}

/** The limit of remembered reports. Beyond it, some pods are reported twice. */
const MAX_REPORTED = 10_000;

function hasReturned({ health, report }: NodeEntry, { uncordonOnReturn, bootId }: DrainRecord): boolean {
  return (
    uncordonOnReturn && health.ready && bootId !== "" && report !== undefined && report.bootId !== bootId
  );
}

/** Returns the drain's deadline. Time in which the coordinator could not act doesn't count. */
function deadlineOf({ startedAt, deadline }: DrainRecord, { since, upSinceMs }: TimeReading): number {
  const endsMs = toEpochMs(deadline);
  if (endsMs === undefined) return Number.POSITIVE_INFINITY;
  const startedMs = toEpochMs(startedAt) ?? endsMs;
  return Math.max(upSinceMs, since(startedMs)) + endsMs - startedMs;
}

function mark(pod: PodEntry, nowMs: number): StoreWrite {
  return rewritePod(pod, { ...pod.record, drainingSince: toTimestamp(nowMs), drainCause: "drain" });
}

export function unmark(pod: PodEntry): StoreWrite {
  return rewritePod(pod, { ...pod.record, drainingSince: undefined, drainCause: "" });
}

/** Returns the names of the first pods and the number of the others. */
function namesOf(left: readonly RemainingPod[]): string {
  const names = left.slice(0, 5).map(({ pod }) => pod.record.name);
  return `${names.join(", ")}${left.length > names.length ? ` and ${left.length - names.length} more` : ""}`;
}
