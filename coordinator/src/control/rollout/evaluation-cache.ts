import type { RolloutResource } from "@forage/proto/forage/store/v1/store";
import type { ResourceProgress } from "./progress-input.ts";

/** The progress of one resource of a rollout, and how long the result is valid. */
export interface Evaluation {
  readonly target: RolloutResource;
  readonly progress: ResourceProgress;
  /** The time at which the progress can change without an event, by the monotonic clock. */
  readonly dueMs: number;
  /** Whether the result is valid until the resource, its pods or its nodes change. */
  readonly holds: boolean;
}

interface Evaluations {
  /** The time of the last evaluation of all resources, by the monotonic clock. */
  readonly fullMs: number;
  readonly byResource: Map<string, Evaluation>;
}

/**
 * The time after which all resources of a rollout are evaluated again. In between, only changed resources are evaluated,
 * because every pod of a rollout of 10,000 pods wakes it. A change without an event shows after this time at the latest.
 */
export const FULL_EVALUATION_MS = 1_000;

/** Caches the evaluations of the resources of unfinished rollouts until a change makes them outdated. */
export class EvaluationCache {
  readonly #evaluations = new Map<string, Evaluations>();

  /** Returns the cached evaluation of the resource if it is still valid. */
  get(id: string, target: RolloutResource, nowMs: number): Evaluation | undefined {
    const evaluation = this.#evaluations.get(id)?.byResource.get(keyOf(target.kind, target.name));
    return evaluation?.holds && nowMs < evaluation.dueMs ? evaluation : undefined;
  }

  /** Stores the evaluations of all resources of the rollout. */
  keep(id: string, evaluations: readonly Evaluation[], fullMs: number): void {
    const byResource = new Map(evaluations.map((it) => [keyOf(it.target.kind, it.target.name), it]));
    this.#evaluations.set(id, { fullMs, byResource });
  }

  /** Returns the time of the last evaluation of all resources, by the monotonic clock. */
  fullMs(id: string): number | undefined {
    return this.#evaluations.get(id)?.fullMs;
  }

  forgetResource(id: string, kind: string, name: string): void {
    this.#evaluations.get(id)?.byResource.delete(keyOf(kind, name));
  }

  forget(id: string): void {
    this.#evaluations.delete(id);
  }
}

function keyOf(kind: string, name: string): string {
  return `${kind}/${name}`;
}
