import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import type { Logger } from "pino";
import type { EventRecorder } from "../../events/event.ts";
import { batches, type Piece } from "../../model/batches.ts";
import { conditionTaints, unreachableTaint } from "../../model/node-taints.ts";
import { tieOf } from "../../model/tied-pod.ts";
import type { Change, NodeEntry, PodEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../clock.ts";
import { Loop } from "../loop.ts";
import { stopPod } from "../pod-pieces.ts";
import { disruptionOf, EvictionPace, type FleetHealth } from "./disruption.ts";
import { type DefaultTolerations, defaultTolerations, type Eviction, evictionOf } from "./eviction-of.ts";
import { noteStanding } from "./standing.ts";

export interface EvictionControllerOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventRecorder;
  /** Default: as without a setting. */
  readonly tolerations?: DefaultTolerations;
}

/** Timers take at most 24 days. */
const longestWaitMs = 86_400_000;
/** Nodes that have been lost for longer, and have no more pods to replace, say nothing about the others. */
const longLostMs = 3_600_000;

/**
 * Keeps on record which nodes are lost or broken, and stops pods that don't tolerate a NoExecute taint of their node, or not for
 * longer. Their workloads replace them.
 */
export class EvictionController {
  readonly #options: EvictionControllerOptions;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;
  readonly #pace = new EvictionPace();
  /** Lost nodes whose pods may be replaced. */
  readonly #admitted = new Set<string>();
  /** Lost nodes whose pods may not, as too many are lost at once. */
  readonly #paused = new Set<string>();

  constructor(options: EvictionControllerOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: "eviction",
      reconcile: (node) => this.#reconcile(node),
      clock: options.clock,
      log: options.log,
    });
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    for (const { name } of options.state.nodes()) this.#loop.wake(name);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "node") this.#wakeForNode(change.before, change.after);
      if (change.kind !== "pod" || change.after === undefined) continue;
      const node = this.#options.state.node(change.after.record.node);
      if (node !== undefined && taintsOf(node).length > 0) this.#loop.wake(node.name);
    }
  }

  #wakeForNode(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const name = (after ?? before)?.name ?? "";
    const turned = before?.health.ready !== after?.health.ready;
    if (after === undefined || after.health.ready) this.#admitted.delete(name);
    if (turned) for (const paused of this.#paused) this.#loop.wake(paused);
    if (turned || before?.record !== after?.record || before?.report !== after?.report) this.#loop.wake(name);
  }

  async #reconcile(name: string): Promise<number | undefined> {
    const { state, clock, log } = this.#options;
    this.#paused.delete(name);
    const node = state.node(name);
    if (node === undefined) return undefined;
    const note = noteStanding(node, clock.nowMs());
    // That change wakes the loop again.
    if (note !== undefined) return this.#write([note]);
    const nowMs = clock.nowMs();
    const due: { readonly pod: PodEntry; readonly eviction: Eviction }[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pod of state.podsOnNode(name)) {
      const eviction = this.#evictionOf(pod, node);
      if (eviction === undefined) continue;
      if (eviction.atMs <= nowMs) due.push({ pod, eviction });
      else nextMs = Math.min(nextMs, eviction.atMs);
    }
    const lost = due.some(({ eviction }) => eviction.taint.key === unreachableTaint);
    const waitMs = lost ? this.#admit(name) : 0;
    const now = due.filter(({ eviction }) => waitMs === 0 || eviction.taint.key !== unreachableTaint);
    for (const { pod, eviction } of now)
      log.info({ pod: pod.record.name, node: name, taint: eviction.taint.key }, "pod evicted");
    await this.#write(now.map(({ pod, eviction }) => stopPod(pod, wordsOf(eviction), nowMs)));
    const againMs = Math.min(nextMs - nowMs, waitMs === 0 ? Number.POSITIVE_INFINITY : waitMs);
    return againMs === Number.POSITIVE_INFINITY ? undefined : Math.min(longestWaitMs, Math.max(0, againMs));
  }

  /** A node that is lost or broken may come back with the data that a pod needs; a taint that somebody put on it means them all. */
  #evictionOf(pod: PodEntry, node: NodeEntry): Eviction | undefined {
    if (pod.record.stoppingSince !== undefined) return undefined;
    // Nothing of it runs any more: only its logs are left, which nobody is in the way of.
    if ((pod.record.job?.counted ?? "") !== "") return undefined;
    const taints = tieOf(pod) === undefined ? taintsOf(node) : node.record.taints;
    return evictionOf(pod.record, taints, this.#options.tolerations ?? defaultTolerations);
  }

  /** Milliseconds until the pods of the lost node may be replaced. */
  #admit(name: string): number {
    if (this.#admitted.has(name)) return 0;
    const fleet = this.#fleetHealth();
    const waitMs = this.#pace.take(fleet, this.#options.clock.monotonicMs());
    if (waitMs === 0) this.#admitted.add(name);
    else this.#hold(name, fleet, waitMs);
    return waitMs;
  }

  #hold(name: string, fleet: FleetHealth, waitMs: number): void {
    const { events, log } = this.#options;
    this.#paused.add(name);
    const disruption = disruptionOf(fleet);
    log.warn({ node: name, ...fleet, disruption, waitMs }, "eviction held back");
    if (disruption === "none") return;
    const cause = disruption === "full" ? "no node can be reached" : "so many are rarely lost at once";
    events.record({
      namespace: "",
      kind: "node",
      name,
      node: name,
      type: "Warning",
      reason: "EvictionPaused",
      message: `its pods are not replaced: ${fleet.lost} of ${fleet.nodes} nodes are unreachable, and ${cause}; more likely it is the coordinator that is cut off`,
    });
  }

  #fleetHealth(): FleetHealth {
    const { state, clock } = this.#options;
    const seen = state.nodes().filter(({ health }) => health.sinceMs !== undefined);
    const counted = seen.filter((node) => node.health.ready || !this.#isLongLost(node, clock.nowMs()));
    return { nodes: counted.length, lost: counted.filter(({ health }) => !health.ready).length };
  }

  #isLongLost(node: NodeEntry, nowMs: number): boolean {
    if (nowMs - (node.health.sinceMs ?? nowMs) < longLostMs) return false;
    return this.#options.state
      .podsOnNode(node.name)
      .every((pod) => this.#evictionOf(pod, node) === undefined);
  }

  async #write(pieces: readonly Piece[]): Promise<undefined> {
    for (const part of batches(pieces)) {
      const result = await this.#options.store.txn(
        part.flatMap(({ compares }) => compares),
        part.flatMap(({ ops }) => ops),
      );
      // Where something changed meanwhile, that change has woken the loop again.
      await this.#options.state.reached(result.revision);
    }
    return undefined;
  }
}

function taintsOf(node: NodeEntry): NodeTaint[] {
  return [...node.record.taints, ...conditionTaints(node)].filter(({ effect }) => effect === "NoExecute");
}

function wordsOf({ taint: { key, value, effect } }: Eviction): string {
  return `its node has the taint ${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
