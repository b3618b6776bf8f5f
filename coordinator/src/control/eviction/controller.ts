import type { Log } from "@forage/common/log";
import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { ObjectFaults, podSubject } from "../../faults/object-faults.ts";
import type { StoreWrite } from "../../model/batches.ts";
import type { EventRecorder } from "../../model/event.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, NodeEntry, PodEntry } from "../../state/entries.ts";
import { UNREACHABLE_TAINT } from "../../state/node-taints.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { stopPod } from "../pod-writes.ts";
import { writeBatches } from "../write.ts";
import { disruptionOf, EvictionPace, type FleetHealth } from "./disruption.ts";
import type { DefaultTolerations, Eviction } from "./eviction-of.ts";
import { MassLoss } from "./mass-loss.ts";
import { noExecuteTaints, pendingEviction } from "./pending-eviction.ts";
import { recordNodeConditions } from "./record-node-conditions.ts";
import { TaintAges } from "./taint-ages.ts";

export interface EvictionControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  readonly events: EventRecorder;
  /** The times for pods without a toleration. Default: `DEFAULT_TOLERATIONS`. */
  readonly tolerations?: DefaultTolerations;
  /** Tracks the share of lost nodes. Default: no node is lost. */
  readonly massLoss?: MassLoss | undefined;
  /** Detects that the process was blocked for a while. Called before pods of lost nodes are evaluated. */
  readonly checkStall?: (() => void) | undefined;
}

interface Due {
  readonly pod: PodEntry;
  readonly eviction: Eviction;
  readonly stop: StoreWrite;
}

/** The limit of the wait until the next evaluation, because timers are limited to 24 days. */
const LONGEST_WAIT_MS = 86_400_000;

/**
 * Records which nodes are lost or broken, and stops pods that don't tolerate a NoExecute taint of their node, or whose
 * toleration has expired. Their workloads replace them.
 */
export class EvictionController {
  readonly #options: EvictionControllerOptions;
  readonly #faults: ObjectFaults;
  readonly #loop: Loop;
  readonly #pace = new EvictionPace();
  readonly #massLoss: MassLoss;
  readonly #ages: TaintAges;
  /** The names of lost nodes whose pods may be replaced. Cleared at each mass loss. */
  readonly #admitted = new Set<string>();
  #massLosses = 0;
  /** The names of lost nodes whose evictions are paused, because too many nodes are lost at once. */
  readonly #paused = new Set<string>();

  constructor(options: EvictionControllerOptions) {
    this.#options = options;
    this.#faults = new ObjectFaults({ loop: "eviction", log: options.log, events: options.events });
    this.#massLoss = options.massLoss ?? new MassLoss({ recoveryMs: 0 });
    const time = options.time ?? new ActingTime({ clock: options.clock });
    this.#ages = new TaintAges({ nowMs: options.clock.nowMs, monotonicMs: time.monotonicMs });
    this.#loop = new Loop({
      name: "eviction",
      reconcile: (node) => this.#reconcile(node),
      clock: options.clock,
      leastDelayMs: time.leastDelayMs,
      log: options.log,
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { name } of options.state.nodes()) this.#loop.wake(name);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === "node") this.#wakeForNode(change.before, change.after);
      if (change.type !== "pod" || change.after === undefined) continue;
      const node = this.#options.state.node(change.after.record.node);
      if (node !== undefined && this.#hasNoExecuteTaint(node)) this.#loop.wake(node.name);
    }
  }

  /**
   * Reports whether the node has a NoExecute taint. True if its taints can't be evaluated, so that the node's own
   * evaluation reports the error.
   */
  #hasNoExecuteTaint(node: NodeEntry): boolean {
    try {
      return noExecuteTaints(node).length > 0;
    } catch {
      return true;
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
    const { state, clock, log, checkStall } = this.#options;
    checkStall?.();
    this.#paused.delete(name);
    const node = state.node(name);
    if (node === undefined) this.#ages.forget(name);
    if (node === undefined) return undefined;
    const note = recordNodeConditions(node, clock.nowMs());
    // The written change wakes the loop again.
    if (note !== undefined) return this.#write([note]);
    const nowMs = clock.nowMs();
    const taints = this.#ages.aged(name, noExecuteTaints(node), {
      key: UNREACHABLE_TAINT,
      atMostMs: clock.monotonicMs() - (this.#massLoss.overMs ?? Number.NEGATIVE_INFINITY),
    });
    const { due, nextMs } = this.#pendingEvictions(node, taints, nowMs);
    const lost = due.some(({ eviction }) => eviction.taint.key === UNREACHABLE_TAINT);
    const waitMs = lost ? this.#admit(name) : 0;
    const now = due.filter(({ eviction }) => waitMs === 0 || eviction.taint.key !== UNREACHABLE_TAINT);
    for (const { pod, eviction } of now)
      log.info({ event: "pod-evicted", pod: pod.record.name, node: name, taint: eviction.taint.key });
    await this.#write(now.map(({ stop }) => stop));
    const againMs = Math.min(nextMs - nowMs, waitMs === 0 ? Number.POSITIVE_INFINITY : waitMs);
    return againMs === Number.POSITIVE_INFINITY ? undefined : Math.min(LONGEST_WAIT_MS, Math.max(0, againMs));
  }

  /**
   * Returns the pods to evict now, and the time of the next eviction. Leaves out and reports pods that can't be evaluated.
   */
  #pendingEvictions(
    node: NodeEntry,
    taints: readonly NodeTaint[],
    nowMs: number,
  ): { readonly due: readonly Due[]; readonly nextMs: number } {
    const due: Due[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pod of this.#options.state.podsOnNode(node.name)) {
      this.#faults.attempt(podSubject(pod), () => {
        const eviction = pendingEviction(pod, node, taints, nowMs, this.#options.tolerations);
        if (eviction === undefined) return;
        if (eviction.atMs <= nowMs)
          due.push({ pod, eviction, stop: stopPod(pod, reasonOf(eviction), nowMs) });
        else nextMs = Math.min(nextMs, eviction.atMs);
      });
    }
    return { due, nextMs };
  }

  /** Returns the milliseconds until the pods of the lost node may be replaced. */
  #admit(name: string): number {
    const monotonicMs = this.#options.clock.monotonicMs();
    const recoveringMs = this.#massLoss.recoveringMs(monotonicMs);
    if (this.#massLosses !== this.#massLoss.count) this.#admitted.clear();
    this.#massLosses = this.#massLoss.count;
    if (recoveringMs === 0 && this.#admitted.has(name)) return 0;
    const { fleet } = this.#massLoss;
    const waitMs = recoveringMs === 0 ? this.#pace.acquire(fleet, monotonicMs) : recoveringMs;
    if (waitMs === 0) this.#admitted.add(name);
    else this.#hold(name, fleet, waitMs);
    return waitMs;
  }

  #hold(name: string, fleet: FleetHealth, waitMs: number): void {
    const { events, log } = this.#options;
    this.#paused.add(name);
    const disruption = disruptionOf(fleet);
    log.warn({ event: "eviction-paused", node: name, ...fleet, disruption, waitMs });
    if (disruption === "none") return;
    const cause =
      disruption === "full" ? "no node is reachable" : "so many nodes are rarely lost at the same time";
    events.record({
      namespace: "",
      kind: "node",
      name,
      node: name,
      type: "Warning",
      reason: "EvictionPaused",
      message: `evictions are paused: ${fleet.lost} of ${fleet.nodes} nodes are unreachable, and ${cause}; the coordinator's own network is the likelier cause`,
    });
  }

  async #write(writes: readonly StoreWrite[]): Promise<undefined> {
    await writeBatches(writes, this.#options);
  }
}

function reasonOf({ taint: { key, value, effect } }: Eviction): string {
  return `its node has the taint ${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
