import { type BackOff, backOffMs } from "@forage/common/back-off";
import { EarliestTimer } from "@forage/common/earliest-timer";
import type { Log } from "@forage/common/log";
import { MassLoss } from "../control/eviction/mass-loss.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, NodeHealth } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import { HEARTBEATS_OF_SILENCE, type LivenessLimits } from "./liveness-limits.ts";

export interface NodeLivenessOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: LivenessLimits;
  /** The shortest interval. Default: a third of `unreachableMs`. */
  readonly heartbeatIntervalMs?: number;
  /** Tracks how much of the fleet is lost, and decides whether endpoints on lost nodes stay. */
  readonly massLoss?: MassLoss | undefined;
  /** Detects that the process was blocked. Called before missing heartbeats are evaluated. */
  readonly checkStall?: (() => void) | undefined;
  /** Reports whether a lost node still has pods to replace. Default: it has. */
  readonly hasPodsToReplace?: ((node: string) => boolean) | undefined;
}

interface TrackedNode {
  /** The monotonic time of the last heartbeat. */
  heartbeatMs: number;
  /** The interval between the node's heartbeats. */
  intervalMs: number;
  allowanceMs: number;
  /** The monotonic time until which the node counts as Ready without a heartbeat. */
  graceUntilMs: number;
  /** Whether the node has not connected since the start of the coordinator. */
  awaited: boolean;
  reachable: boolean;
  /** The monotonic time of the loss. */
  lostMs: number;
  /** Whether the node's heartbeats arrive again after losses. It becomes Ready if they continue. */
  onProbation: boolean;
  /** The reason why heartbeats may be missing. */
  why: string;
  /** The times of the node's losses within the window. */
  losses: number[];
  /** Cancels the end of the probation or the second check. Undefined: neither is scheduled. */
  cancel: (() => void) | undefined;
}

/** The window within which losses count towards flapping. */
const LOSS_WINDOW_MS = 600_000;
/**
 * The number of losses within the window after which a node is Ready at once. After further losses it is on probation
 * first.
 */
const FREE_LOSSES = 2;
const PROBATION: BackOff = { baseMs: 10_000, capMs: 60_000 };
/**
 * The delay of a second check before a node becomes unreachable. After a pause of the process, pending messages are read
 * between the two checks.
 */
const RECHECK_MS = 500;
const MIN_CHECK_MS = 50;
/** The time by which the first check of a node may be early, so that the nodes of a large fleet are visited less often. */
const EARLY_MS = 100;
/**
 * The share of the grace period of a start within which a further node has to return to extend it. If thousands of agents
 * return at once, the coordinator needs longer than the grace period. It is extended to at most four times its length.
 */
const RETURN_GAP = 1 / 3;
const START_GRACE_LIMIT = 4;
/**
 * The time after which agents close a connection without a response. They then wait for their back-off before they return.
 */
const AGENT_PATIENCE_MS = 5_000;
/** The time after which a lost node without pods to replace is ignored in mass losses. */
const LONG_LOST_MS = 3_600_000;

/** Tracks which nodes are reachable, and sets their health in the view. */
export class NodeLiveness {
  readonly #options: NodeLivenessOptions;
  readonly #liveness = new Map<string, TrackedNode>();
  readonly #massLoss: MassLoss;
  /** The monotonic time of the start. */
  readonly #startMs: number;
  /** The monotonic time at which a node last connected for the first time since the start. */
  #lastReturnMs = Number.NEGATIVE_INFINITY;
  #cancelRecovery: () => void = () => {};
  #cancelRecheck: () => void = () => {};
  /** Starts the first checks of all nodes. */
  readonly #firstChecks: EarliestTimer;
  #stopped = false;

  constructor(options: NodeLivenessOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
    this.#firstChecks = new EarliestTimer(options.clock, () => this.#checkNodes());
    this.#massLoss = options.massLoss ?? new MassLoss({ recoveryMs: 0 });
    const nodes = options.state.nodes();
    for (const node of nodes) this.#begin(node);
    this.#massLoss.wasAbsent(options.clock.monotonicMs());
    this.#evaluateFleet();
    for (const node of nodes) this.#show(node);
  }

  /**
   * Records that the node has connected or sent a message. A node with a longer interval than the shortest one becomes
   * unreachable after three of its intervals.
   */
  recordContact(node: string, intervalMs = this.#shortestMs): void {
    if (this.#stopped) return;
    const tracked = this.#liveness.get(node) ?? this.#add(node, false);
    tracked.heartbeatMs = this.#options.clock.monotonicMs();
    tracked.why = "it sends no heartbeats";
    if (tracked.awaited) this.#lastReturnMs = tracked.heartbeatMs;
    tracked.awaited = false;
    if (!tracked.reachable) this.#markReturned(node, tracked);
    tracked.intervalMs = intervalMs;
    const allowanceMs = this.#allowanceMs(tracked);
    if (tracked.allowanceMs === allowanceMs) return;
    // The first message ends the node's grace period.
    tracked.allowanceMs = allowanceMs;
    if (tracked.reachable) this.#checkLater(tracked);
  }

  /**
   * Records that the node's stream has ended. `silent`: the coordinator has ended it because of missing heartbeats. Any
   * other end counts as a sign of life.
   */
  left(node: string, silent: boolean): void {
    const tracked = this.#liveness.get(node);
    if (tracked === undefined) return;
    if (!silent) {
      tracked.why = "its connection was lost";
      tracked.heartbeatMs = this.#options.clock.monotonicMs();
    }
    if (!tracked.reachable) this.#fail(node, tracked);
  }

  /** Records that the process was blocked for this long. Messages of nodes from this time may not have been read yet. */
  recordStall(stalledMs: number): void {
    const { clock, limits } = this.#options;
    const nowMs = clock.monotonicMs();
    for (const tracked of this.#liveness.values()) {
      tracked.heartbeatMs = Math.min(nowMs, tracked.heartbeatMs + stalledMs);
      // Agents may have disconnected, and return as after a restart of the coordinator.
      if (stalledMs >= AGENT_PATIENCE_MS) tracked.graceUntilMs = nowMs + limits.startGraceMs;
    }
    if (stalledMs < AGENT_PATIENCE_MS) return;
    this.#massLoss.wasAbsent(nowMs);
    this.#evaluateFleet();
  }

  forget(node: string): void {
    this.#liveness.get(node)?.cancel?.();
    if (this.#liveness.delete(node)) this.#evaluateFleet();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRecovery();
    this.#cancelRecheck();
    this.#firstChecks.stop();
    for (const tracked of this.#liveness.values()) tracked.cancel?.();
    this.#liveness.clear();
  }

  /** Begins to track a node. A node that was lost before the coordinator's start stays lost until it connects. */
  #begin({ name, record }: NodeEntry): void {
    const { clock, limits } = this.#options;
    const lostMs = toEpochMs(record.unreachableSince);
    const tracked = this.#add(name, lostMs === undefined);
    tracked.why = "it has not connected since the coordinator started";
    tracked.allowanceMs = Math.max(limits.startGraceMs, limits.unreachableMs);
    tracked.awaited = true;
    if (lostMs !== undefined) tracked.lostMs = clock.monotonicMs() - Math.max(0, clock.nowMs() - lostMs);
  }

  #show({ name, record }: NodeEntry): void {
    const tracked = this.#liveness.get(name);
    if (tracked === undefined) return;
    if (tracked.reachable) this.#noteReachable(name, tracked);
    else this.#set(name, false, tracked.why, toEpochMs(record.unreachableSince));
  }

  #add(node: string, reachable: boolean): TrackedNode {
    const { clock, limits } = this.#options;
    const nowMs = clock.monotonicMs();
    const tracked = {
      heartbeatMs: nowMs,
      intervalMs: this.#shortestMs,
      allowanceMs: limits.unreachableMs,
      graceUntilMs: nowMs,
      awaited: false,
      reachable,
      lostMs: nowMs,
      onProbation: false,
      why: "",
      losses: [],
      cancel: undefined,
    };
    this.#liveness.set(node, tracked);
    return tracked;
  }

  #markReturned(node: string, tracked: TrackedNode): void {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs() - LOSS_WINDOW_MS;
    tracked.losses = tracked.losses.filter((atMs) => atMs > sinceMs);
    const waitMs = probationMs(tracked.losses.length);
    if (waitMs === 0) this.#noteReachable(node, tracked);
    if (waitMs === 0 || tracked.onProbation) return;
    tracked.onProbation = true;
    const why = `it was lost ${tracked.losses.length} times in ${LOSS_WINDOW_MS / 60_000} minutes and becomes ready after ${waitMs / 1000} s of heartbeats`;
    this.#set(node, false, why);
    tracked.cancel = clock.schedule(waitMs, () => {
      const silentMs = clock.monotonicMs() - tracked.heartbeatMs;
      if (silentMs < this.#allowanceMs(tracked)) this.#noteReachable(node, tracked);
      else this.#fail(node, tracked);
    });
  }

  #fail(node: string, tracked: TrackedNode): void {
    cancelTimer(tracked);
    tracked.onProbation = false;
    this.#set(node, false, tracked.why);
  }

  #noteReachable(node: string, tracked: TrackedNode): void {
    const returns = !tracked.reachable;
    tracked.reachable = true;
    tracked.onProbation = false;
    if (returns) this.#evaluateFleet();
    this.#set(node, true, "");
    this.#checkLater(tracked);
  }

  #checkLater(tracked: TrackedNode): void {
    cancelTimer(tracked);
    this.#firstChecks.fireBy(this.#deadlineMs(tracked) - RECHECK_MS);
  }

  /** Schedules the second check of every node whose deadline is close. */
  #checkNodes(): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [node, tracked] of this.#liveness) {
      if (!tracked.reachable || tracked.cancel !== undefined) continue;
      const deadlineMs = this.#deadlineMs(tracked);
      const checkMs = deadlineMs - RECHECK_MS;
      if (checkMs > nowMs + EARLY_MS) nextMs = Math.min(nextMs, checkMs);
      else {
        const delayMs = Math.max(MIN_CHECK_MS, deadlineMs - nowMs);
        tracked.cancel = clock.schedule(delayMs, () => this.#suspect(node, tracked));
      }
    }
    this.#firstChecks.fireBy(nextMs);
  }

  #suspect(node: string, tracked: TrackedNode): void {
    const { clock, log, checkStall } = this.#options;
    tracked.cancel = undefined;
    checkStall?.();
    const nowMs = clock.monotonicMs();
    if (this.#deadlineMs(tracked) > nowMs) {
      this.#checkLater(tracked);
      return;
    }
    tracked.reachable = false;
    tracked.lostMs = nowMs;
    this.#evaluateFleet();
    // A loss that the coordinator's own network caused doesn't count as flapping.
    if (!this.#massLoss.isActive(nowMs)) tracked.losses.push(nowMs);
    log.warn({ event: "node-unreachable", node, why: tracked.why, losses: tracked.losses.length });
    this.#set(node, false, tracked.why);
  }

  /** Counts the lost nodes, before any of them is set as lost in the view. */
  #evaluateFleet(): void {
    const { clock, hasPodsToReplace } = this.#options;
    const nowMs = clock.monotonicMs();
    let nodes = 0;
    let lost = 0;
    let suspected = 0;
    let suspicionMs = MIN_CHECK_MS;
    for (const [node, tracked] of this.#liveness) {
      const isSuspected = tracked.reachable && this.#isSuspected(tracked, nowMs);
      const isLost = !tracked.reachable || isSuspected;
      if (isSuspected) {
        suspected++;
        suspicionMs = Math.max(suspicionMs, this.#suspicionMs(tracked));
      }
      const isLongLost = !tracked.reachable && nowMs - tracked.lostMs >= LONG_LOST_MS;
      if (isLongLost && hasPodsToReplace?.(node) === false) continue;
      nodes++;
      if (isLost) lost++;
    }
    this.#massLoss.update({ nodes, lost }, nowMs);
    this.#endRecoveryLater();
    this.#cancelRecheck();
    // A node whose heartbeat was only late must no longer count as suspected, which no other event triggers.
    if (suspected === 0) return;
    this.#cancelRecheck = clock.schedule(suspicionMs, () => this.#evaluateFleet());
  }

  /**
   * Reports whether the node is probably about to be lost. Nodes that were disconnected at the same time become unreachable
   * one by one within a heartbeat interval, because their last heartbeats were sent at different times. Counting suspected
   * nodes shows the first loss as one of many.
   */
  #isSuspected(tracked: TrackedNode, nowMs: number): boolean {
    return this.#deadlineMs(tracked) - nowMs <= this.#suspicionMs(tracked);
  }

  #deadlineMs({ heartbeatMs, allowanceMs, graceUntilMs, awaited }: TrackedNode): number {
    const deadlineMs = Math.max(heartbeatMs + allowanceMs, graceUntilMs);
    if (!awaited) return deadlineMs;
    const { startGraceMs } = this.#options.limits;
    const limitMs = this.#startMs + START_GRACE_LIMIT * startGraceMs;
    return Math.max(deadlineMs, Math.min(this.#lastReturnMs + RETURN_GAP * startGraceMs, limitMs));
  }

  /** Returns how long before its deadline a node is suspected. */
  #suspicionMs(tracked: TrackedNode): number {
    const spreadMs = 1.25 * tracked.intervalMs;
    return Math.min(spreadMs, this.#allowanceMs(tracked) - spreadMs);
  }

  get #shortestMs(): number {
    const { limits, heartbeatIntervalMs = limits.unreachableMs / HEARTBEATS_OF_SILENCE } = this.#options;
    return heartbeatIntervalMs;
  }

  /** Returns the time without heartbeats after which the node is unreachable. */
  #allowanceMs({ intervalMs }: TrackedNode): number {
    const { unreachableMs } = this.#options.limits;
    return intervalMs > this.#shortestMs
      ? Math.max(unreachableMs, HEARTBEATS_OF_SILENCE * intervalMs)
      : unreachableMs;
  }

  #endRecoveryLater(): void {
    const { clock } = this.#options;
    this.#cancelRecovery();
    const waitMs = this.#massLoss.recoveringMs(clock.monotonicMs());
    if (waitMs > 0) this.#cancelRecovery = clock.schedule(waitMs, () => this.#endRecovery());
  }

  /** Ends the recovery. Missing nodes count as lost from now on. */
  #endRecovery(): void {
    if (this.#massLoss.isActive(this.#options.clock.monotonicMs())) return;
    for (const [node, tracked] of this.#liveness) if (!tracked.reachable) this.#set(node, false, tracked.why);
  }

  #set(node: string, ready: boolean, message: string, sinceMs?: number): void {
    const { state, clock } = this.#options;
    const before = state.node(node)?.health;
    const same = before?.ready === ready && before.sinceMs !== undefined;
    const kept = !ready && this.#keepsEndpoints(before, sinceMs !== undefined);
    const health = {
      lastSeenMs: before?.lastSeenMs,
      ...(before?.usage && { usage: before.usage }),
      ...(before?.traffic && { traffic: before.traffic }),
      ready,
      message,
      ...(kept && { kept }),
      sinceMs: sinceMs ?? (same ? before.sinceMs : clock.nowMs()),
    };
    const notify = !same || before.message !== message || (before.kept ?? false) !== kept;
    state.setNodeHealth(node, health, notify);
  }

  /**
   * Reports whether the node keeps its endpoints: it was serving when the mass loss began, or may have been. Losses before
   * the start of this process are unknown.
   */
  #keepsEndpoints(before: NodeHealth | undefined, lostBeforeStart: boolean): boolean {
    if (!this.#massLoss.isActive(this.#options.clock.monotonicMs())) return false;
    return lostBeforeStart || before?.ready === true || before?.kept === true;
  }
}

function cancelTimer(tracked: TrackedNode): void {
  tracked.cancel?.();
  tracked.cancel = undefined;
}

/** Returns the probation of a node with this many losses within the window. */
function probationMs(losses: number): number {
  if (losses <= FREE_LOSSES) return 0;
  return backOffMs(losses - FREE_LOSSES, PROBATION);
}
