import { AttemptState, type NodeTaint, type WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import type { Fleet } from "@forage/scheduler";
import { isBlocked } from "../control/depends/dependency-gate.ts";
import { disruptionOf } from "../control/eviction/disruption.ts";
import { noExecuteTaints, pendingEviction } from "../control/eviction/pending-eviction.ts";
import { usesNothing } from "../control/job/pod-state.ts";
import { resourceKey, workloadStatusKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { PlanOptions } from "../plan/plan-apply.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";
import { UNREACHABLE_TAINT } from "../state/node-taints.ts";
import type { FreeRoom } from "./free-room.ts";
import type { LossVerdict } from "./loss-verdict.ts";
import type { PodShape, PodShapes } from "./pod-shapes.ts";
import type { RemainingWork } from "./rest.ts";
import type { ServiceCounts } from "./service-counts.ts";
import { fleetHealthWith } from "./suppose.ts";

export interface LossProofsOptions {
  readonly plan: PlanOptions;
  /** The nodes and bound pods. */
  readonly fleet: Fleet;
  readonly shapes: PodShapes;
  readonly room: FreeRoom;
  readonly counts: ServiceCounts;
  /** The work of the controllers without a loss. */
  readonly rest: RemainingWork;
}

/** A pod that leaves the lost node, and the shape of its replacement. */
interface Displaced {
  readonly pod: PodEntry;
  readonly shape: PodShape;
}

/**
 * The latest eviction that is considered, because later ones are close to the horizon of a dry run
 * or beyond it.
 */
const LATEST_EVICTION_MS = 25 * 60_000;

/**
 * Proves the effect of a node's loss without a simulation of the controllers, if the effect depends
 * neither on the order of placements nor on the scheduler's choice among several nodes. A
 * replacement certainly finds a node if all other replacements together can't fill every node that
 * accepts it now. It certainly finds none if no node accepts it now, no space becomes free
 * elsewhere, and it could preempt no pod.
 */
export class LossProofs {
  readonly #options: LossProofsOptions;
  readonly #isPossible: boolean;
  readonly #feasible = new Map<PodShape, readonly string[]>();
  readonly #settled = new Map<string, boolean>();

  constructor(options: LossProofsOptions) {
    this.#options = options;
    const { plan, rest, shapes } = options;
    const { state } = plan;
    // A pod that must not run next to others may find a node once these have moved.
    const isPlain = (pod: PodEntry): boolean => shapes.of(pod).rules === "plain";
    this.#isPossible =
      rest.isAtRest && plan.control.rebalance === undefined && state.unboundPods().every(isPlain);
  }

  /** Returns the proven effect; undefined if it can only be found by a simulation. */
  proofOf(node: NodeEntry): LossVerdict | undefined {
    const { plan, counts } = this.#options;
    if (!this.#isPossible) return undefined;
    if (disruptionOf(fleetHealthWith(new Set([node.name]), plan.state)) !== "none") return undefined;
    const displaced = this.#displacedFrom(node);
    const waiting = displaced && this.#waitingOf(displaced, node.name);
    if (waiting === undefined) return undefined;
    const short = counts.shortWithout(node.name);
    const isSafe = waiting.size === 0 && short.length === 0;
    return { node: node.name, waiting, short, isSafe, isEstimated: false };
  }

  #displacedFrom(node: NodeEntry): Displaced[] | undefined {
    const { shapes, plan } = this.#options;
    const { state, nowMs, control } = plan;
    const taints = taintsOfLost(node, nowMs);
    const displaced: Displaced[] = [];
    for (const pod of state.podsOnNode(node.name)) {
      const { record } = pod;
      if (record.job !== undefined && usesNothing(pod) && record.job.counted !== "") continue;
      if (record.stoppingSince !== undefined || record.drainingSince !== undefined) return undefined;
      const eviction = pendingEviction(pod, node, taints, nowMs, control.tolerations);
      if (eviction === undefined) continue;
      const shape = shapes.of(pod);
      if (eviction.atMs - nowMs > LATEST_EVICTION_MS || shape.rules === "other") return undefined;
      const { kind } = splitWorkloadKey(pod.workloadKey);
      // A component that the copy lacks would replace this pod.
      if (control.foreignKinds?.includes(kind)) continue;
      if (!this.#isSettled(pod)) return undefined;
      displaced.push({ pod, shape });
    }
    return displaced;
  }

  /**
   * Reports whether the workload is a service that immediately replaces a lost pod by one of the
   * same shape.
   */
  #isSettled({ workloadKey, record }: PodEntry): boolean {
    const known = this.#settled.get(workloadKey);
    if (known !== undefined) return known;
    const { state, control } = this.#options.plan;
    const { namespace, kind, name } = splitWorkloadKey(workloadKey);
    const resource = state.resource(resourceKey(namespace, kind, name));
    const workload = resource?.workload;
    const pods = state.podsOfWorkload(workloadKey);
    const settled =
      resource !== undefined &&
      workload !== undefined &&
      !resource.record.deleting &&
      pods.length === workload.replicas &&
      pods.every(
        (pod) =>
          pod.record.stoppingSince === undefined &&
          pod.record.drainingSince === undefined &&
          pod.record.priority === record.priority &&
          workload.currentHashes.has(pod.record.templateHash),
      ) &&
      !this.#options.rest.moving.has(workloadKey) &&
      hasEnded(state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record) &&
      !isBlocked(state)(resource) &&
      control.policyRefusal?.(resource.record) === undefined;
    this.#settled.set(workloadKey, settled);
    return settled;
  }

  /**
   * Returns the replacements that certainly wait, by workload; undefined if this can't be proved.
   */
  #waitingOf(displaced: readonly Displaced[], lost: string): LossVerdict["waiting"] | undefined {
    const waiting = new Map<string, { pods: number }>();
    const wait = (workload: string, pods: number): void => {
      waiting.set(workload, { pods: (waiting.get(workload)?.pods ?? 0) + pods });
    };
    const placeable: Displaced[] = [];
    for (const one of displaced) {
      if (this.#feasibleFor(one.shape).some((name) => name !== lost)) placeable.push(one);
      else if (this.#mayPreempt(one.shape)) return undefined;
      else wait(one.pod.workloadKey, 1);
    }
    const shapes = new Set(placeable.map(({ shape }) => shape));
    const demand = { shapes, pods: placeable.length, lost };
    if ([...shapes].every((shape) => this.#slots(shape, demand) >= placeable.length)) return waiting;
    const [only, ...others] = shapes;
    if (only === undefined || others.length > 0 || only.rules !== "plain" || this.#mayPreempt(only))
      return undefined;
    wait(placeable[0]?.pod.workloadKey ?? "", placeable.length - this.#slots(only, demand));
    return waiting;
  }

  /**
   * Returns the least number of these pods that find a node, regardless of the order of placement.
   */
  #slots(
    shape: PodShape,
    demand: { readonly shapes: ReadonlySet<PodShape>; readonly pods: number; readonly lost: string },
  ): number {
    const isSpaced = [...demand.shapes].some(({ rules }) => rules === "spaced");
    const largest = largestOf(demand.shapes);
    let slots = 0;
    for (const name of this.#feasibleFor(shape)) {
      if (name === demand.lost) continue;
      // An unchanged node accepts at least one.
      slots += isSpaced ? 1 : Math.max(1, this.#options.room.slots(name, largest));
      if (slots >= demand.pods) break;
    }
    return slots;
  }

  #mayPreempt({ spec }: PodShape): boolean {
    return spec.preemptionPolicy !== "Never" && this.#options.fleet.hasPodsBelow(spec.priority ?? 0);
  }

  #feasibleFor(shape: PodShape): readonly string[] {
    let feasible = this.#feasible.get(shape);
    if (feasible === undefined) {
      feasible = this.#options.fleet.feasibleNodes(shape.spec);
      this.#feasible.set(shape, feasible);
    }
    return feasible;
  }
}

/** Returns the taints that evict pods from the node after its loss. */
export function taintsOfLost(node: NodeEntry, nowMs: number): NodeTaint[] {
  const addedAt = toTimestamp(nowMs);
  return [...noExecuteTaints(node), { key: UNREACHABLE_TAINT, value: "", effect: "NoExecute", addedAt }];
}

/** Reports whether the workload's newest rollout attempt has ended. */
function hasEnded(record: WorkloadStatusRecord | undefined): boolean {
  const attempt = record?.status?.$case === "containerService" ? record.status.value.attempt : undefined;
  const state = attempt?.state;
  return state !== AttemptState.PROGRESSING && state !== AttemptState.ROLLING_BACK;
}

function largestOf(shapes: ReadonlySet<PodShape>): ReadonlyMap<string, number> {
  const largest = new Map<string, number>();
  for (const { requests } of shapes)
    for (const [resource, amount] of requests)
      largest.set(resource, Math.max(amount, largest.get(resource) ?? 0));
  return largest;
}
