import type { RolloutSource } from "../api/forage/watch-rollout.ts";
import { visitAffected } from "../control/rollout/concerned.ts";
import type { ResourceProgress } from "../control/rollout/progress-input.ts";
import {
  RolloutEvaluator,
  type RolloutEvaluatorOptions,
  unsettled,
} from "../control/rollout/rollout-evaluator.ts";

/**
 * Evaluates rollouts on a follower. The results of resources are those that the leader has stored;
 * until then they are in progress.
 */
export class FollowedRollouts implements RolloutSource {
  readonly #options: RolloutEvaluatorOptions;
  readonly #evaluation: RolloutEvaluator;
  /** The progress of watched rollouts since their last change, shared by all watchers. */
  readonly #progress = new Map<string, readonly ResourceProgress[]>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #unsubscribe: () => void;

  constructor(options: RolloutEvaluatorOptions) {
    this.#options = options;
    this.#evaluation = new RolloutEvaluator(options);
    this.#unsubscribe = options.state.subscribe((changes) => {
      if (this.#watchers.size === 0) return;
      const ids = new Set<string>();
      for (const change of changes) visitAffected(change, options.state, (id) => ids.add(id));
      for (const id of ids) this.#changed(id);
    });
  }

  progress(id: string): readonly ResourceProgress[] | undefined {
    const rollout = this.#options.state.rollout(id);
    if (rollout === undefined) return undefined;
    if (rollout.record.finished) return rollout.record.resources.map((r) => ({ ...r }));
    const progress = this.#progress.get(id) ?? this.#evaluation.at(rollout).map(unsettled);
    if (this.#watchers.has(id)) this.#progress.set(id, progress);
    return progress;
  }

  rolloutView(key: string): ReturnType<RolloutEvaluator["rolloutView"]> {
    return this.#evaluation.rolloutView(key);
  }

  watch(id: string, listener: () => void): () => void {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers.add(listener));
    return () => {
      watchers.delete(listener);
      if (watchers.size > 0 || this.#watchers.get(id) !== watchers) return;
      this.#watchers.delete(id);
      this.#progress.delete(id);
    };
  }

  close(): void {
    this.#unsubscribe();
  }

  #changed(id: string): void {
    this.#progress.delete(id);
    for (const listener of this.#watchers.get(id) ?? []) listener();
  }
}
