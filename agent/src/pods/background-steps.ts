import { isDeepStrictEqual } from "node:util";
import { type BackgroundStep, stepKey } from "./step.ts";
import type { StepEffect } from "./step-context.ts";

interface Running {
  readonly backgroundStep: BackgroundStep;
  readonly abort: AbortController;
}

/** The background steps of one pod. For each run of a container, at most one step of each kind is running. */
export class BackgroundSteps {
  readonly #running = new Map<string, Running>();
  readonly #promises = new Set<Promise<void>>();
  /** The last successful step for each key. Running an equal step again would change nothing. */
  readonly #done = new Map<string, BackgroundStep>();

  get underWay(): ReadonlySet<string> {
    return new Set(this.#running.keys());
  }

  /**
   * Starts a step. `onEnd` is called when the step has ended, unless it was cancelled. `work` has to observe its
   * signal.
   */
  begin(
    backgroundStep: BackgroundStep,
    work: (signal: AbortSignal) => Promise<StepEffect>,
    onEnd: (effect: StepEffect | undefined, error: unknown) => Promise<void>,
  ): void {
    const key = stepKey(backgroundStep);
    const abort = new AbortController();
    this.#running.set(key, { backgroundStep, abort });
    const done = this.#follow(key, backgroundStep, work, abort.signal, onEnd).finally(() =>
      this.#promises.delete(done),
    );
    this.#promises.add(done);
  }

  /**
   * Cancels the steps of containers that are not in `ids`, except stops: a stop finds out itself that its container is
   * gone.
   */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const [key, { backgroundStep, abort }] of this.#running) {
      if (ids.has(backgroundStep.id) || backgroundStep.type === "stopContainer") continue;
      this.#running.delete(key);
      abort.abort();
    }
    for (const [key, { id }] of this.#done) if (!ids.has(id)) this.#done.delete(key);
  }

  /** Resolves when no step is running. */
  async settle(): Promise<void> {
    await Promise.all(this.#promises);
  }

  async #follow(
    key: string,
    backgroundStep: BackgroundStep,
    work: (signal: AbortSignal) => Promise<StepEffect>,
    signal: AbortSignal,
    onEnd: (effect: StepEffect | undefined, error: unknown) => Promise<void>,
  ): Promise<void> {
    let effect: StepEffect | undefined;
    let failure: unknown;
    try {
      // The step succeeded and is requested again. Without a back-off it would repeat forever.
      if (isDeepStrictEqual(this.#done.get(key), backgroundStep))
        throw new Error(`${backgroundStep.type} had no effect`);
      effect = await work(signal);
      this.#done.set(key, backgroundStep);
    } catch (error) {
      this.#done.delete(key);
      failure = error;
    }
    if (signal.aborted) return;
    this.#running.delete(key);
    await onEnd(effect, failure);
  }
}
