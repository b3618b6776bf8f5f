import { isDeepStrictEqual } from "node:util";
import { type BackgroundStep, stepKey } from "./step.ts";
import type { StepEffect } from "./step-context.ts";

interface Running {
  readonly backgroundStep: BackgroundStep;
  readonly abort: AbortController;
}

/** Steps of one pod that go on beside the others: at most one of a kind for each run of a container. */
export class BackgroundSteps {
  readonly #running = new Map<string, Running>();
  readonly #promises = new Set<Promise<void>>();
  /** The last that went well, by key: doing it again would change as little. */
  readonly #done = new Map<string, BackgroundStep>();

  get underWay(): ReadonlySet<string> {
    return new Set(this.#running.keys());
  }

  /** `onEnd` is called once it has ended, unless it was let go. `work` must heed its signal. */
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

  /** Lets go of what is pointless for containers that don't run any more. A stop is left to find that out itself. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const [key, { backgroundStep, abort }] of this.#running) {
      if (ids.has(backgroundStep.id) || backgroundStep.kind === "stopContainer") continue;
      this.#running.delete(key);
      abort.abort();
    }
    for (const [key, { id }] of this.#done) if (!ids.has(id)) this.#done.delete(key);
  }

  /** Resolves once none goes on. */
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
      // The step succeeded and is still requested. Without a wait it would repeat for ever.
      if (isDeepStrictEqual(this.#done.get(key), backgroundStep))
        throw new Error(`${backgroundStep.kind} had no effect`);
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
