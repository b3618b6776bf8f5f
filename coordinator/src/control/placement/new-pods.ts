import type { Log } from "@forage/common/log";
import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import { type Fleet, podKey as fleetKey, type PodKey } from "@forage/scheduler";
import { refsOf } from "../../model/pod-refs.ts";
import { PodSpecs } from "../../model/pod-spec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Clock } from "../../time/clock.ts";
import type { SharedTemplate } from "../pod-writes.ts";
import { NODES_PER_POD, Turn } from "./turn.ts";

export interface NewPodPlacementOptions {
  readonly state: ClusterView;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly log: Log;
  /** Reports whether no waiting pod has to be tried before a new one. */
  readonly isIdle: () => boolean;
  /** Called when a place in the fleet was released. */
  readonly freed: () => void;
  /** Runs the function after the pending work of the event loop. Default: `setImmediate`. */
  readonly defer?: ((run: () => void) => void) | undefined;
}

/**
 * Places new pods before their records are written, so that one write both creates and binds a pod. Pods that it does not
 * place are created without a node, and wait in the queue. It has one caller, who places pods, writes them, confirms the
 * written ones, and releases the others before it places pods again.
 */
export class NewPodPlacement {
  readonly #options: NewPodPlacementOptions;
  readonly #specs = new PodSpecs();
  readonly #turn: Turn;
  /** The placed pods that are not known to be written, by key. */
  readonly #open = new Map<PodKey, PodRecord>();
  /** Whether no waiting pod comes first. Undefined: something may have changed since it was last known. */
  #idle: boolean | undefined;

  constructor(options: NewPodPlacementOptions) {
    this.#options = options;
    this.#turn = new Turn(options.defer ?? setImmediate);
  }

  /** Reports whether pods of the template may be placed. The transaction that binds a pod with claims binds these too. */
  accepts({ namespace, template }: SharedTemplate): boolean {
    return refsOf(namespace, template).every(({ kind }) => kind !== "claim");
  }

  /**
   * Binds the pod in the scheduler's fleet, and returns its record with the node. `record` contains the template.
   * Undefined: waiting pods come first, or no node is feasible, or the pod can't be evaluated.
   */
  place(record: PodRecord): PodRecord | undefined {
    const { state, fleet, clock } = this.#options;
    this.#idle ??= this.#options.isIdle();
    const name = fleetKey(record);
    // If another pod has this name, the write will fail.
    if (!this.#idle || fleet.nodeOf(name) !== undefined) return undefined;
    this.#turn.spendNow(NODES_PER_POD + fleet.size);
    try {
      const key = workloadKey(record.namespace, record.workloadKind, record.workloadName);
      const left = state.drainingPods(key).map((pod) => pod.record.node);
      const node = fleet.schedule(this.#specs.of(record, [], left));
      if (node === undefined) return undefined;
      this.#open.set(name, record);
      return { ...record, node, boundAt: toTimestamp(clock.nowMs()) };
    } catch {
      // The queue reports the error once the pod is created.
      fleet.unbind(name);
      return undefined;
    }
  }

  /** Lets the event loop handle heartbeats and calls once placement has occupied it for a while. */
  async rest(): Promise<void> {
    if (!this.#turn.isOver) return;
    await this.#turn.spend(0);
    this.#idle = undefined;
  }

  /** Records that the pods were written. */
  confirm(pods: readonly PodRecord[]): void {
    this.#idle = undefined;
    for (const pod of pods) {
      this.#open.delete(fleetKey(pod));
      this.#options.log.info({ event: "pod-bound", pod: pod.name, node: pod.node });
    }
  }

  /** Releases the places of all pods that were not confirmed. */
  release(): void {
    const { state, fleet, freed } = this.#options;
    this.#idle = undefined;
    if (this.#open.size === 0) return;
    for (const [name, { namespace, name: podName }] of this.#open) {
      const now = state.pod(namespace, podName);
      if (now === undefined || now.record.node === "") fleet.unbind(name);
    }
    this.#open.clear();
    freed();
  }
}
