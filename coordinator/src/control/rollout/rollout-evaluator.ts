import { AttemptState, RolloutReason, type RolloutResource } from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { ActingTime } from "../../acting-time/acting-time.ts";
import type { ServiceFailure } from "../../destination/service-failure.ts";
import { isReady } from "../../endpoints/readiness.ts";
import { resourceKey } from "../../model/keys.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry, ResourceEntry, RolloutEntry } from "../../state/entries.ts";
import { compareRollouts } from "../../state/rollout-order.ts";
import type { Clock } from "../../time/clock.ts";
import { blockers } from "../depends/dependency-gate.ts";
import { jobProgressInput } from "../job/progress-input.ts";
import { type UnschedulablePods, waitingSince } from "../placement/unschedulable-pods.ts";
import type { Prefetcher } from "../workload/prefetch.ts";
import type { ProgressLimits } from "../workload/progress-limits.ts";
import { type RolloutView, rolloutView } from "../workload/rollout-view.ts";
import { workloadInput } from "../workload/view-input.ts";
import type { Evaluation } from "./evaluation-cache.ts";
import { isTerminal, nextEvaluationMs, progressOf, storedProgress } from "./progress.ts";
import type { IdleTarget, ProgressInput, ResourceProgress } from "./progress-input.ts";

export interface RolloutEvaluatorOptions {
  readonly state: ClusterView;
  readonly time: ActingTime;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  /** The image prefetcher. Undefined: nodes have every image. */
  readonly prefetcher?: Pick<Prefetcher, "imagesOn"> | undefined;
  readonly limits: ProgressLimits;
  readonly readyEndpoints: (namespace: string, service: string) => number;
  /** Returns the reason why the service can have no endpoints. Undefined: it can. */
  readonly serviceFailure?: (namespace: string, service: string) => ServiceFailure | undefined;
  /** Returns the error of a route or of a service's inline route. Empty: it has none. */
  readonly routeProblem?: (kind: string, namespace: string, name: string) => string;
}

/** Evaluates the progress of rollouts from the view. Writes nothing. */
export class RolloutEvaluator {
  readonly #options: RolloutEvaluatorOptions;

  constructor(options: RolloutEvaluatorOptions) {
    this.#options = options;
  }

  /**
   * Returns the evaluations in the order of the request. Services are evaluated last, because their progress depends on
   * their targets.
   */
  at(
    rollout: RolloutEntry,
    kept: (target: RolloutResource) => Evaluation | undefined = () => undefined,
  ): Evaluation[] {
    const { resources } = rollout.record;
    const evaluations = new Map<RolloutResource, Evaluation>();
    for (const target of resources)
      if (target.kind !== "service") evaluations.set(target, kept(target) ?? this.#evaluate(rollout, target));
    const known = [...evaluations.values()].map(({ progress }) => progress);
    return resources.map((target) => evaluations.get(target) ?? this.#evaluate(rollout, target, known));
  }

  #evaluate(
    rollout: RolloutEntry,
    target: RolloutResource,
    known: readonly ResourceProgress[] = [],
  ): Evaluation {
    if (isTerminal(target.status))
      return { target, progress: storedProgress(target), dueMs: Number.POSITIVE_INFINITY, holds: true };
    const input = this.#inputOf(rollout, target, known);
    const dueMs = this.#options.clock.monotonicMs() + nextEvaluationMs(input);
    const progress = progressOf(input);
    // Other kinds depend on more than their resource and pods, and are cheap. Final states are stored, so they are always
    // evaluated again.
    const isOfPods = target.kind === "container_service" && input.waitsFor?.length === 0;
    return { target, progress, dueMs, holds: isOfPods && !isTerminal(progress.status) };
  }

  #inputOf(
    rollout: RolloutEntry,
    target: RolloutResource,
    known: readonly ResourceProgress[],
  ): ProgressInput {
    const { state, unschedulable, limits, readyEndpoints, serviceFailure, routeProblem } = this.#options;
    const moment = this.#options.time.now();
    const { namespace, createdAt } = rollout.record;
    const isService = target.kind === "service";
    const resource = state.resource(resourceKey(namespace, target.kind, target.name));
    const key = workloadKey(namespace, target.kind, target.name);
    return {
      target,
      rolloutId: rollout.id,
      newer: this.#newer(rollout, target),
      startedMs: Math.max(moment.upSinceMs, moment.since(toEpochMs(createdAt) ?? 0)),
      resource,
      job: jobProgressInput(resource, state),
      waitsFor: resource === undefined ? [] : blockers(resource, state),
      pods: state.podsOfWorkload(key),
      rollout: target.kind === "container_service" ? this.rolloutView(key) : undefined,
      unschedulable: (uid) => waitingSince(unschedulable.get(uid), moment),
      isReady: (pod) => isReady(pod, (node) => state.node(node)?.health.ready ?? false),
      readyEndpoints: isService ? readyEndpoints(namespace, target.name) : 0,
      serviceFailure: isService ? serviceFailure?.(namespace, target.name) : undefined,
      targetProgress: isService ? known.find((it) => isTargetOf(resource, it)) : undefined,
      idleTarget: isService ? this.#idleTarget(resource) : undefined,
      routeProblem: routeProblem?.(target.kind, namespace, target.name) ?? "",
      nowMs: moment.nowMs,
      since: moment.since,
      limits,
    };
  }

  /** Returns the service's target if it has replicas but no ready pod. */
  #idleTarget(service: ResourceEntry | undefined): IdleTarget | undefined {
    const spec = service?.record.resource?.spec;
    if (service === undefined || spec?.$case !== "service") return undefined;
    const { state } = this.#options;
    const { namespace } = service.record;
    const name = spec.value.target;
    const entry = state.resource(resourceKey(namespace, "container_service", name));
    if (entry === undefined || entry.record.deleting || (entry.workload?.replicas ?? 0) === 0)
      return undefined;
    const key = workloadKey(namespace, "container_service", name);
    const isServing = (pod: PodEntry): boolean =>
      isReady(pod, (node) => state.node(node)?.health.ready ?? false);
    if (state.podsOfWorkload(key).some(isServing)) return undefined;
    const attempt = this.rolloutView(key)?.attempt;
    return { name, settled: attempt !== undefined && attempt.state !== AttemptState.PROGRESSING };
  }

  #newer({ record }: RolloutEntry, { kind, name }: RolloutResource): string | undefined {
    const found = this.#options.state
      .activeRolloutsOf(record.namespace, kind, name)
      .filter((other) => compareRollouts(other.record, record) > 0);
    return found.sort((a, b) => compareRollouts(a.record, b.record)).at(-1)?.id;
  }

  /** Returns the state of a container service's rollout attempt, by the key of its workload. */
  rolloutView(key: string): RolloutView | undefined {
    const view = { ...this.#options, pickVictims: () => [] };
    return rolloutView(workloadInput(key, this.#options.time.now(), view));
  }
}

function isTargetOf(service: ResourceEntry | undefined, { kind, name, action }: ResourceProgress): boolean {
  const spec = service?.record.resource?.spec;
  const target = spec?.$case === "service" ? spec.value.target : undefined;
  return kind === "container_service" && action !== "remove" && name === target;
}

/**
 * Returns the resource's progress. A final state is reported as in progress until it is stored, because it may still
 * change.
 */
export function unsettled({ target, progress }: Evaluation): ResourceProgress {
  if (!isTerminal(progress.status) || isTerminal(target.status)) return progress;
  return { ...progress, status: RolloutStatus.IN_PROGRESS, reason: RolloutReason.UNSPECIFIED };
}
