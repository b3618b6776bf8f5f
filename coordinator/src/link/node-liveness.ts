import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Log } from "@forage/common/log";
import { MassLoss } from "../control/eviction/mass-loss.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, NodeHealth } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";

export interface LivenessLimits {
  /** A node becomes unreachable after this silence. */
  readonly unreachableMs: number;
  /**
   * Nodes count as ready for this long after a start of the coordinator, and longer while others still return one after the
   * other. It is longer than an agent's longest wait between two attempts to connect.
   */
  readonly startGraceMs: number;
  /** The longest interval between heartbeats in a large fleet. Default: there is no limit. */
  readonly longestHeartbeatMs?: number;
}

/** Three heartbeats may be missed. */
export const HEARTBEATS_OF_SILENCE = 3;

/** Three heartbeats may be missed, and an agent has time to restart. */
export function defaultLivenessLimits(heartbeatIntervalMs: number): LivenessLimits {
  return {
    unreachableMs: Math.max(7_500, HEARTBEATS_OF_SILENCE * heartbeatIntervalMs),
    startGraceMs: 15_000,
  };
}

export interface NodeLivenessOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: LivenessLimits;
  /** The shortest interval. Default: a third of the silence. */
  readonly heartbeatIntervalMs?: number;
  /** Takes in how much of the fleet is lost, and decides whether endpoints on lost nodes stay. */
  readonly massLoss?: MassLoss | undefined;
  /** Notices that the process was held up; called before silence is judged. */
  readonly checkHoldUp?: (() => void) | undefined;
  /** Reports whether a lost node still has pods to replace. Default: it has. */
  readonly hasPodsToReplace?: ((node: string) => boolean) | undefined;
}

interface TrackedNode {
  /** The time of the last heartbeat, by the monotonic clock. */
  heartbeatMs: number;
  /** The interval between its heartbeats. */
  intervalMs: number;
  allowanceMs: number;
  /** The time until which it counts as Ready at least, by the monotonic clock. */
  graceUntilMs: number;
  /** Whether it has yet to connect since the start of the coordinator. */
  awaited: boolean;
  believed: boolean;
  /** The time of its loss, by the monotonic clock. */
  lostMs: number;
  /** Whether the node's heartbeats arrive again. It becomes Ready if that lasts. */
  onProbation: boolean;
  /** The reason why heartbeats may be missing. */
  why: string;
  /** The times of its losses within the window. */
  losses: number[];
  cancel: () => void;
}

/** Losses that are so long ago no longer speak against a node. */
const LOSS_WINDOW_MS = 600_000;
/** The number of losses that count as accidents. After the next one, a node that returns is on probation first. */
const FREE_LOSSES = 2;
const PROBATION: BackOff = { baseMs: 10_000, capMs: 60_000 };
/**
 * A node becomes unreachable only after a second check. If the whole process was paused, the messages that arrived meanwhile are
 * read between the two.
 */
const RECHECK_MS = 500;
const MIN_CHECK_MS = 50;
/**
 * Thousands of agents that return at once take the coordinator longer than the grace of its start. The grace goes on until none
 * of them has returned for a third of it, at most for four times its length.
 */
const RETURN_GAP = 1 / 3;
const START_GRACE_LIMIT = 4;
/** Agents give up a connection that does not answer for so long, and then need their back-off to return. */
const AGENT_PATIENCE_MS = 5_000;
/** Nodes that have been lost for longer, and have no pods left to replace, don't count in a mass loss. */
const LONG_LOST_MS = 3_600_000;

/** Tracks which nodes are reachable, and feeds their health into the view. */
export class NodeLiveness {
  readonly #options: NodeLivenessOptions;
  readonly #liveness = new Map<string, TrackedNode>();
  readonly #massLoss: MassLoss;
  /** By the monotonic clock. */
  readonly #startMs: number;
  /** The time at which a node connected for the first time since the start, by the monotonic clock. */
  #lastReturnMs = Number.NEGATIVE_INFINITY;
  #cancelRecovery: () => void = () => {};
  #cancelRecheck: () => void = () => {};
  #stopped = false;

  constructor(options: NodeLivenessOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
    this.#massLoss = options.massLoss ?? new MassLoss({ recoveryMs: 0 });
    const nodes = options.state.nodes();
    for (const node of nodes) this.#begin(node);
    this.#massLoss.wasAbsent(options.clock.monotonicMs());
    this.#evaluateFleet();
    for (const node of nodes) this.#show(node);
  }

  /**
   * Records that the node has connected or sent a message. A node that sends heartbeats at a longer interval than the shortest one
   * has three of its intervals before it counts as unreachable.
   */
  recordContact(node: string, intervalMs = this.#shortestMs): void {
    if (this.#stopped) return;
    const tracked = this.#liveness.get(node) ?? this.#add(node, false);
    tracked.heartbeatMs = this.#options.clock.monotonicMs();
    tracked.why = "it sends no heartbeats";
    if (tracked.awaited) this.#lastReturnMs = tracked.heartbeatMs;
    tracked.awaited = false;
    if (!tracked.believed) this.#comeBack(node, tracked);
    tracked.intervalMs = intervalMs;
    const allowanceMs = this.#allowanceMs(tracked);
    if (tracked.allowanceMs === allowanceMs) return;
    // The grace of the start is over with the first word.
    tracked.allowanceMs = allowanceMs;
    if (!tracked.believed) return;
    tracked.cancel();
    this.#suspectLater(node, tracked);
  }

  /**
   * Records that the node's stream has ended. `silent` says that the coordinator ended it for silence; any other end counts as
   * a sign of life.
   */
  left(node: string, silent: boolean): void {
    const tracked = this.#liveness.get(node);
    if (tracked === undefined) return;
    if (!silent) {
      tracked.why = "its connection was lost";
      tracked.heartbeatMs = this.#options.clock.monotonicMs();
    }
    if (!tracked.believed) this.#fail(node, tracked);
  }

  /** The process did not run for so long, and what nodes sent meanwhile may not have been read yet. */
  heldUp(heldMs: number): void {
    const { clock, limits } = this.#options;
    const nowMs = clock.monotonicMs();
    for (const tracked of this.#liveness.values()) {
      tracked.heartbeatMs = Math.min(nowMs, tracked.heartbeatMs + heldMs);
      // Agents may have left meanwhile, and return as after a restart of the coordinator.
      if (heldMs >= AGENT_PATIENCE_MS) tracked.graceUntilMs = nowMs + limits.startGraceMs;
    }
    if (heldMs < AGENT_PATIENCE_MS) return;
    this.#massLoss.wasAbsent(nowMs);
    this.#evaluateFleet();
  }

  forget(node: string): void {
    this.#liveness.get(node)?.cancel();
    if (this.#liveness.delete(node)) this.#evaluateFleet();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRecovery();
    this.#cancelRecheck();
    for (const tracked of this.#liveness.values()) tracked.cancel();
    this.#liveness.clear();
  }

  /** A node that was lost before the coordinator's start stays lost until it connects. */
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
    if (tracked.believed) this.#believe(name, tracked);
    else this.#set(name, false, tracked.why, toEpochMs(record.unreachableSince));
  }

  #add(node: string, believed: boolean): TrackedNode {
    const { clock, limits } = this.#options;
    const nowMs = clock.monotonicMs();
    const tracked = {
      heartbeatMs: nowMs,
      intervalMs: this.#shortestMs,
      allowanceMs: limits.unreachableMs,
      graceUntilMs: nowMs,
      awaited: false,
      believed,
      lostMs: nowMs,
      onProbation: false,
      why: "",
      losses: [],
      cancel: () => {},
    };
    this.#liveness.set(node, tracked);
    return tracked;
  }

  #comeBack(node: string, tracked: TrackedNode): void {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs() - LOSS_WINDOW_MS;
    tracked.losses = tracked.losses.filter((atMs) => atMs > sinceMs);
    const waitMs = probationMs(tracked.losses.length);
    if (waitMs === 0) this.#believe(node, tracked);
    if (waitMs === 0 || tracked.onProbation) return;
    tracked.onProbation = true;
    const why = `it was lost ${tracked.losses.length} times in ${LOSS_WINDOW_MS / 60_000} minutes and becomes ready after ${waitMs / 1000} s of heartbeats`;
    this.#set(node, false, why);
    tracked.cancel = clock.schedule(waitMs, () => {
      const silentMs = clock.monotonicMs() - tracked.heartbeatMs;
      if (silentMs < this.#allowanceMs(tracked)) this.#believe(node, tracked);
      else this.#fail(node, tracked);
    });
  }

  #fail(node: string, tracked: TrackedNode): void {
    tracked.cancel();
    tracked.onProbation = false;
    this.#set(node, false, tracked.why);
  }

  #believe(node: string, tracked: TrackedNode): void {
    tracked.cancel();
    const returns = !tracked.believed;
    tracked.believed = true;
    tracked.onProbation = false;
    if (returns) this.#evaluateFleet();
    this.#set(node, true, "");
    this.#suspectLater(node, tracked);
  }

  #suspectLater(node: string, tracked: TrackedNode): void {
    const { clock } = this.#options;
    const restMs = (): number => this.#deadlineMs(tracked) - clock.monotonicMs();
    tracked.cancel = clock.schedule(Math.max(0, restMs() - RECHECK_MS), () => {
      tracked.cancel = clock.schedule(Math.max(MIN_CHECK_MS, restMs()), () => this.#suspect(node, tracked));
    });
  }

  #suspect(node: string, tracked: TrackedNode): void {
    const { clock, log, checkHoldUp } = this.#options;
    checkHoldUp?.();
    const nowMs = clock.monotonicMs();
    if (this.#deadlineMs(tracked) > nowMs) {
      this.#suspectLater(node, tracked);
      return;
    }
    tracked.believed = false;
    tracked.lostMs = nowMs;
    this.#evaluateFleet();
    // A loss that the coordinator's own link caused doesn't count against the node.
    if (!this.#massLoss.isActive(nowMs)) tracked.losses.push(nowMs);
    log.warn({ event: "node-unreachable", node, why: tracked.why, losses: tracked.losses.length });
    this.#set(node, false, tracked.why);
  }

  /** Counts the lost nodes, before any of them is shown as lost. */
  #evaluateFleet(): void {
    const { clock, hasPodsToReplace } = this.#options;
    const nowMs = clock.monotonicMs();
    let nodes = 0;
    let lost = 0;
    let suspected = 0;
    let suspicionMs = MIN_CHECK_MS;
    for (const [node, tracked] of this.#liveness) {
      const isSuspected = tracked.believed && this.#isSuspected(tracked, nowMs);
      const isLost = !tracked.believed || isSuspected;
      if (isSuspected) {
        suspected++;
        suspicionMs = Math.max(suspicionMs, this.#suspicionMs(tracked));
      }
      const isLongLost = !tracked.believed && nowMs - tracked.lostMs >= LONG_LOST_MS;
      if (isLongLost && hasPodsToReplace?.(node) === false) continue;
      nodes++;
      if (isLost) lost++;
    }
    this.#massLoss.update({ nodes, lost }, nowMs);
    this.#endRecoveryLater();
    this.#cancelRecheck();
    // A node whose heartbeat was only late must no longer count as suspected. No other event reports that.
    if (suspected === 0) return;
    this.#cancelRecheck = clock.schedule(suspicionMs, () => this.#evaluateFleet());
  }

  /**
   * Reports whether the node is about to be lost. Nodes that were cut off at one moment are lost one by one within a
   * heartbeat, because their last heartbeats were sent at different times. Counting suspected nodes shows the first loss as
   * one of many.
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

  /** A node counts as about to be lost for so long before its deadline. */
  #suspicionMs(tracked: TrackedNode): number {
    const spreadMs = 1.25 * tracked.intervalMs;
    return Math.min(spreadMs, this.#allowanceMs(tracked) - spreadMs);
  }

  get #shortestMs(): number {
    const { limits, heartbeatIntervalMs = limits.unreachableMs / HEARTBEATS_OF_SILENCE } = this.#options;
    return heartbeatIntervalMs;
  }

  /** Returns the silence after which the node is unreachable. */
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

  /** Ends the recovery. From now on missing nodes count as lost. */
  #endRecovery(): void {
    if (this.#massLoss.isActive(this.#options.clock.monotonicMs())) return;
    for (const [node, tracked] of this.#liveness) if (!tracked.believed) this.#set(node, false, tracked.why);
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
   * Reports whether the node keeps its endpoints: it served when the mass loss began, or may have served. Losses before the start
   * of this process are unknown.
   */
  #keepsEndpoints(before: NodeHealth | undefined, lostBeforeStart: boolean): boolean {
    if (!this.#massLoss.isActive(this.#options.clock.monotonicMs())) return false;
    return lostBeforeStart || before?.ready === true || before?.kept === true;
  }
}

/** Returns the probation of a node with this many losses within the window. */
function probationMs(losses: number): number {
  if (losses <= FREE_LOSSES) return 0;
  return backOffMs(losses - FREE_LOSSES, PROBATION);
}
