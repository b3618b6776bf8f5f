import { isDeepStrictEqual } from "node:util";
import { RuntimeError } from "../runtime/runtime.ts";
import { backOffMs } from "./back-off.ts";
import { effectivePolicy, nextStep, type PodView } from "./next-step.ts";
import { type Fault, type ImageState, memoryOf, type Pod, type PodMemory } from "./pod.ts";
import { type PodStatus, podStatus, withTimes } from "./pod-status.ts";
import type { PodWorld } from "./pod-world.ts";
import { runStep, type StepContext, type StepEffect } from "./run-step.ts";
import { type Step, stepKey } from "./step.ts";

export interface PodLoopStart {
  readonly pod: Pod;
  readonly goal: PodView["goal"];
  readonly memory: PodMemory;
}

// A wait is looked at again at least this often, so that a wall clock that jumped can't make it endless.
const WAIT_MAX_MS = 300_000;

/**
 * Keeps one pod as it is to be: wake, read all, decide, act, sleep. Whoever learns something calls `wake`,
 * which only means "look again".
 */
export class PodLoop {
  readonly #world: PodWorld;
  readonly #sinceMs: number;
  readonly #faults = new Map<string, Fault>();
  #pod: Pod;
  #goal: PodView["goal"];
  #goalAbort = new AbortController();
  #stoppingSinceMs: number | undefined;
  #memory: PodMemory;
  #stale = false;
  #published = false;
  #status: PodStatus | undefined;
  #lastStep: Step | undefined;
  #woken = false;
  #closed = false;
  #wakeUp: (() => void) | undefined;

  constructor(world: PodWorld, start: PodLoopStart) {
    this.#world = world;
    this.#sinceMs = world.clock.nowMs();
    this.#pod = start.pod;
    this.#goal = start.goal;
    this.#memory = start.memory;
    if (start.goal === "remove") this.#stop();
  }

  get pod(): Pod {
    return this.#pod;
  }

  get memory(): PodMemory {
    return this.#memory;
  }

  get goal(): PodView["goal"] {
    return this.#goal;
  }

  status(): PodStatus {
    return this.#status ?? podStatus(this.#view());
  }

  /** A pod that is to be removed stays so: its uid never comes back to life. */
  assign(pod: Pod, goal: PodView["goal"]): void {
    this.#pod = pod;
    if (goal === "remove" && this.#goal === "run") this.#stop();
    this.wake();
  }

  /** The namespace was found gone or unwired. */
  sandboxLost(): void {
    const { sandbox: _, ...rest } = this.#memory;
    void this.#remember(rest);
    this.#published = false;
    this.wake();
  }

  /** The network started with what this pod remembers: its ports are published as they were, and stay so. */
  portsTakenOver(): void {
    this.#published = this.#memory.sandbox !== undefined && this.#memory.ports !== undefined;
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Ends `run` after the present step. */
  close(): void {
    this.#closed = true;
    this.wake();
  }

  /** Until closed or the signal aborts. A step that is being done is finished first, unless `hardSignal` aborts too. */
  async run(signal: AbortSignal, hardSignal: AbortSignal): Promise<void> {
    const stop = () => this.wake();
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted && !this.#closed) {
      this.#woken = false;
      const decision = nextStep(this.#view(), this.#world.restartLimits);
      this.#tell();
      if (decision.kind === "step") await this.#do(decision.step, hardSignal);
      else {
        this.#lastStep = undefined;
        await this.#sleep(decision.untilMs);
      }
    }
    signal.removeEventListener("abort", stop);
  }

  #stop(): void {
    this.#goal = "remove";
    this.#stoppingSinceMs ??= this.#world.clock.nowMs();
    this.#faults.clear();
    this.#goalAbort.abort();
  }

  async #do(step: Step, signal: AbortSignal): Promise<void> {
    const { clock, events } = this.#world;
    const context: StepContext = {
      view: this.#view(),
      signal,
      goalSignal: this.#goal === "run" ? this.#goalAbort.signal : signal,
    };
    const beganMs = clock.monotonicMs();
    try {
      // The same step twice in a row changed nothing; without a wait it would be done forever.
      if (isDeepStrictEqual(step, this.#lastStep)) throw new Error(`${step.kind} had no effect`);
      this.#lastStep = step;
      await this.#take(await runStep(this.#world, step, context));
      this.#faults.delete(stepKey(step));
      events.stepped(this.#pod.uid, step, clock.monotonicMs() - beganMs, undefined);
    } catch (error) {
      if (signal.aborted || (context.goalSignal.aborted && !(error instanceof RuntimeError))) return;
      this.#fail(step, error);
      events.stepped(this.#pod.uid, step, clock.monotonicMs() - beganMs, error);
    }
  }

  async #take(effect: StepEffect): Promise<void> {
    const saved = effect.memory === undefined ? undefined : this.#remember(effect.memory);
    if (effect.published !== undefined) this.#published = effect.published;
    if (effect.looked) this.#stale = false;
    if (effect.durable) await saved;
  }

  #fail(step: Step, error: unknown): void {
    this.#lastStep = undefined;
    const key = stepKey(step);
    const failures = (this.#faults.get(key)?.failures ?? 0) + 1;
    const message = error instanceof Error ? error.message : String(error);
    const notBeforeMs = this.#world.clock.nowMs() + backOffMs(failures, this.#world.faultBackOff);
    this.#faults.set(key, { failures, notBeforeMs, message });
    // A call to the runtime that failed may have had its effect all the same: look before trying again.
    if (error instanceof RuntimeError && step.kind !== "look") this.#stale = true;
  }

  #view(): PodView {
    return {
      pod: this.#pod,
      goal: this.#goal,
      ...(this.#stoppingSinceMs !== undefined && { stoppingSinceMs: this.#stoppingSinceMs }),
      containers: this.#world.observer.containersOf(this.#pod.uid),
      stale: this.#stale,
      published: this.#published,
      images: this.#images(),
      memory: this.#memory,
      faults: this.#faults,
      nowMs: this.#world.clock.nowMs(),
    };
  }

  #images(): ReadonlyMap<string, ImageState> {
    const states = new Map<string, ImageState>();
    for (const spec of this.#pod.containers) {
      const policy = effectivePolicy(spec, memoryOf(this.#memory, spec.name));
      states.set(spec.name, this.#world.images.state(spec.image, policy, this.#sinceMs));
    }
    return states;
  }

  /** Sends the status up if it changed. */
  #tell(): void {
    const view = this.#view();
    const memory = withTimes(this.#memory, podStatus(view), view.nowMs);
    if (memory !== this.#memory) void this.#remember(memory);
    const status = podStatus({ ...view, memory });
    if (isDeepStrictEqual(status, this.#status)) return;
    this.#status = status;
    this.#world.events.changed(status);
  }

  #remember(memory: PodMemory): Promise<void> {
    if (isDeepStrictEqual(memory, this.#memory)) return Promise.resolve();
    this.#memory = memory;
    return this.#world.events.remembered(this.#pod.uid, memory);
  }

  #sleep(untilMs: number | undefined): Promise<void> {
    if (this.#woken) return Promise.resolve();
    const { clock } = this.#world;
    return new Promise((resolve) => {
      const wake = () => {
        cancel?.();
        this.#wakeUp = undefined;
        resolve();
      };
      this.#wakeUp = wake;
      const cancel =
        untilMs === undefined
          ? undefined
          : clock.after(Math.min(WAIT_MAX_MS, Math.max(0, untilMs - clock.nowMs())), wake);
    });
  }
}
