import { isDeepStrictEqual } from "node:util";
import { backOffMs } from "@forage/common/back-off";
import { withLinkedSignal } from "@forage/common/link-signals";
import { messageOf } from "@forage/common/message-of";
import { DeviceError } from "../devices/devices.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { runStep } from "./act/run-step.ts";
import { BackgroundSteps } from "./background-steps.ts";
import { effectivePolicy } from "./decide/container-steps.ts";
import { nextStep } from "./decide/next-step.ts";
import { type PodStatus, podStatus } from "./decide/pod-status.ts";
import { isLive, outcomeOf, type PodOutcome, type PodView } from "./decide/pod-view.ts";
import { type Fault, type ImageState, memoryOf, type Pod, type PodMemory } from "./pod.ts";
import { allContainers } from "./pod-containers.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { PodProbes } from "./pod-probes.ts";
import { hasForgotten, type PodOnHost, recoveredMemory } from "./recover-memory.ts";
import { withHealth, withTimes } from "./remember-status.ts";
import { type BackgroundStep, isBackgroundStep, type Step, stepKey } from "./step.ts";
import { type Change, StartBlockedError, type StepContext, type StepEffect } from "./step-context.ts";

export interface PodLoopStart {
  readonly pod: Pod;
  readonly goal: PodView["goal"];
  readonly memory: PodMemory;
}

// The longest wait between two evaluations. It bounds the effect of a jump of the wall clock.
const WAIT_MAX_MS = 300_000;

// containerd completes a request within tenths of a second even if its client has disconnected.
const LATE_START_MS = 2_000;

/**
 * Brings one pod to its desired state: wake, read everything, decide, act, sleep. A call of `wake` only means that
 * something may have changed.
 */
export class PodLoop {
  readonly #dependencies: PodDependencies;
  readonly #sinceMs: number;
  readonly #faults = new Map<string, Fault>();
  readonly #backgroundSteps = new BackgroundSteps();
  readonly #probes: PodProbes;
  #pod: Pod;
  #goal: PodView["goal"];
  #goalAbort = new AbortController();
  #stoppingSinceMs: number | undefined;
  #memory: PodMemory;
  #savedOutcome: PodOutcome | undefined;
  #stale = false;
  /** Whether devices were freed since the current step began. */
  #devicesFreed = false;
  #startUncertainUntilMs: number | undefined;
  #published = false;
  /** The volumes of the assignment whose content was last shown. Undefined if unknown. */
  #volumesShown: Pod["volumes"];
  #status: PodStatus | undefined;
  #lastStep: Step | undefined;
  #woken = false;
  #closed = false;
  #wakeUp: (() => void) | undefined;

  constructor(dependencies: PodDependencies, start: PodLoopStart) {
    this.#dependencies = dependencies;
    this.#sinceMs = dependencies.clock.monotonicMs();
    this.#pod = start.pod;
    this.#goal = start.goal;
    this.#memory = start.memory;
    this.#probes = new PodProbes(dependencies);
    // The outcome was read from disk, or from a reset after a reboot, which would reproduce it.
    this.#savedOutcome = outcomeOf(this.#view());
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

  /** Sets the assignment. A pod that has to be removed can't be assigned again, because its uid is never reused. */
  assign(pod: Pod, goal: PodView["goal"]): void {
    const { volumes } = this.#pod;
    // Equal volumes keep their object, so a comparison by identity shows whether their content is current.
    this.#pod = volumes && isDeepStrictEqual(volumes, pod.volumes) ? { ...pod, volumes } : pod;
    if (goal === "remove" && this.#goal === "run") this.#stop();
    // The new assignment may contain the missing object.
    for (const [key, { reason }] of this.#faults) if (reason !== undefined) this.#faults.delete(key);
    this.wake();
  }

  /** Ends the pod for good. The coordinator creates its replacement. */
  evict(message: string): void {
    if (this.#goal === "remove" || this.#memory.failure !== undefined) return;
    void this.#remember((memory) => ({ ...memory, failure: { reason: "Evicted", message } }));
    this.wake();
  }

  /** Forgets the sandbox because its namespace no longer exists or is disconnected from the bridge. */
  sandboxLost(): void {
    void this.#remember(({ sandbox: _, ...rest }) => rest);
    this.#published = false;
    this.wake();
  }

  /** The network still has a sandbox that the pod does not remember. Does nothing if no container runs in it. */
  recover(found: Omit<PodOnHost, "containers">): void {
    const containers = this.#dependencies.observer.containersOf(this.#pod.uid);
    if (!hasForgotten(this.#pod, this.#memory, containers)) return;
    const nowMs = this.#dependencies.clock.nowMs();
    void this.#remember((lost) => recoveredMemory(this.#pod, lost, { ...found, containers }, nowMs));
    this.#dependencies.events.recovered(this.#pod.uid);
  }

  /** Records that the network has adopted this pod's ports, which are still published. */
  portsTakenOver(): void {
    this.#published = this.#memory.sandbox !== undefined && this.#memory.ports !== undefined;
  }

  /** Ends the wait of a pod for devices. */
  devicesFreed(): void {
    this.#devicesFreed = true;
    const notBeforeMs = this.#dependencies.clock.monotonicMs();
    for (const [key, fault] of this.#faults) {
      if (!fault.forDevices) continue;
      this.#faults.set(key, { ...fault, notBeforeMs });
      this.wake();
    }
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Makes `run` return after the current step. */
  close(): void {
    this.#closed = true;
    this.wake();
  }

  /** Runs until closed or the signal aborts. Finishes the current step first, unless `hardSignal` aborts too. */
  async run(signal: AbortSignal, hardSignal: AbortSignal): Promise<void> {
    const stop = () => this.wake();
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted && !this.#closed) {
      this.#woken = false;
      this.#follow();
      const decision = nextStep(this.#view(), this.#dependencies.restartLimits);
      this.#report();
      if (decision.type === "step") {
        if (isBackgroundStep(decision.step)) this.#send(decision.step, hardSignal);
        else await this.#do(decision.step, hardSignal);
      } else {
        this.#lastStep = undefined;
        await this.#sleep(decision.untilMs);
      }
    }
    signal.removeEventListener("abort", stop);
    this.#probes.close();
    await this.#backgroundSteps.settle();
  }

  #stop(): void {
    this.#goal = "remove";
    this.#stoppingSinceMs ??= this.#dependencies.clock.monotonicMs();
    this.#faults.clear();
    this.#goalAbort.abort();
  }

  /** Updates which containers are probed and cancels background steps that have become pointless. */
  #follow(): void {
    const view = this.#view();
    this.#probes.follow(view);
    this.#backgroundSteps.keepOnly(new Set(view.containers.filter(isLive).map(({ id }) => id)));
    const present = new Set(view.containers.filter(({ state }) => state !== "exited").map(({ id }) => id));
    for (const key of this.#faults.keys()) {
      const [kind, id = ""] = key.split("/", 2);
      if ((kind === "stopContainer" || kind === "postStart") && !present.has(id)) this.#faults.delete(key);
    }
  }

  async #do(step: Step, signal: AbortSignal): Promise<void> {
    const beganMs = this.#dependencies.clock.monotonicMs();
    const context = this.#context(signal);
    this.#devicesFreed = false;
    try {
      // The same step twice in a row means that it changed nothing. Without a back-off it would repeat forever.
      if (isDeepStrictEqual(step, this.#lastStep)) throw new Error(`${step.type} had no effect`);
      this.#lastStep = step;
      const effect = await runStep(this.#dependencies, step, context);
      await this.#succeeded(step, effect, beganMs);
    } catch (error) {
      this.#lastStep = undefined;
      this.#failed(step, error, beganMs, context);
    }
  }

  #send(backgroundStep: BackgroundStep, signal: AbortSignal): void {
    const beganMs = this.#dependencies.clock.monotonicMs();
    this.#lastStep = undefined;
    const context = this.#context(signal);
    this.#backgroundSteps.begin(
      backgroundStep,
      (letGo) =>
        withLinkedSignal([signal, letGo], (either) =>
          runStep(this.#dependencies, backgroundStep, { ...context, signal: either }),
        ),
      async (effect, error) => {
        if (effect !== undefined) await this.#succeeded(backgroundStep, effect, beganMs);
        else this.#failed(backgroundStep, error, beganMs, context);
        this.wake();
      },
    );
  }

  #context(signal: AbortSignal): StepContext {
    return {
      view: this.#view(),
      signal,
      goalSignal: this.#goal === "run" ? this.#goalAbort.signal : signal,
      remember: (change) => this.#remember(change),
    };
  }

  async #succeeded(step: Step, effect: StepEffect, beganMs: number): Promise<void> {
    if (effect.final && effect.change) await this.#rememberRemoval(effect.change);
    const saved = effect.change === undefined ? undefined : this.#remember(effect.change);
    if ("savedOutcome" in effect) this.#savedOutcome = effect.savedOutcome;
    if (effect.published !== undefined) this.#published = effect.published;
    if (effect.volumesShown !== undefined) this.#volumesShown = effect.volumesShown;
    if (effect.looked) {
      this.#stale = false;
      if ((this.#startUncertainUntilMs ?? 0) <= this.#dependencies.clock.monotonicMs())
        this.#startUncertainUntilMs = undefined;
    }
    if (effect.durable) await saved;
    this.#faults.delete(stepKey(step));
    this.#dependencies.events.stepped(
      this.#pod.uid,
      step,
      this.#dependencies.clock.monotonicMs() - beganMs,
      undefined,
    );
  }

  #failed(step: Step, error: unknown, beganMs: number, { signal, goalSignal }: StepContext): void {
    const { clock, events, faultBackOff } = this.#dependencies;
    if (signal.aborted || (goalSignal.aborted && !(error instanceof RuntimeError))) return;
    const key = stepKey(step);
    const failures = (this.#faults.get(key)?.failures ?? 0) + 1;
    const message = messageOf(error);
    const blocked = error instanceof StartBlockedError ? error : undefined;
    const forDevices = blocked?.cause instanceof DeviceError;
    const waitMs = forDevices && this.#devicesFreed ? 0 : backOffMs(failures, faultBackOff);
    this.#faults.set(key, {
      ...{ failures, message, notBeforeMs: clock.monotonicMs() + waitMs, retryAtMs: clock.nowMs() + waitMs },
      ...(blocked && { reason: blocked.reason }),
      ...(forDevices && { forDevices }),
    });
    // A failed call to the runtime may have taken effect all the same, so list the containers before retrying.
    if (error instanceof RuntimeError && step.type !== "inspect") {
      this.#stale = true;
      if (step.type === "startContainer") this.#startUncertainUntilMs = clock.monotonicMs() + LATE_START_MS;
    }
    events.stepped(this.#pod.uid, step, clock.monotonicMs() - beganMs, error);
  }

  #view(): PodView {
    return {
      pod: this.#pod,
      goal: this.#goal,
      ...(this.#stoppingSinceMs !== undefined && { stoppingSinceMs: this.#stoppingSinceMs }),
      containers: this.#dependencies.observer.containersOf(this.#pod.uid),
      stale: this.#stale,
      ...(this.#startUncertainUntilMs !== undefined && {
        startUncertainUntilMs: this.#startUncertainUntilMs,
      }),
      published: this.#published,
      volumesOutdated: this.#volumesShown !== this.#pod.volumes && showsFiles(this.#pod),
      images: this.#images(),
      verdicts: this.#probes.verdicts,
      memory: this.#memory,
      savedOutcome: this.#savedOutcome,
      faults: this.#faults,
      underWay: this.#backgroundSteps.underWay,
      nowMs: this.#dependencies.clock.nowMs(),
      monotonicMs: this.#dependencies.clock.monotonicMs(),
    };
  }

  #images(): ReadonlyMap<string, ImageState> {
    const states = new Map<string, ImageState>();
    for (const spec of allContainers(this.#pod)) {
      const policy = effectivePolicy(spec, memoryOf(this.#memory, spec.name));
      states.set(spec.name, this.#dependencies.images.state(spec.image, policy, this.#sinceMs, this.#pod));
    }
    return states;
  }

  /** Publishes the status if it has changed. */
  #report(): void {
    const view = this.#view();
    void this.#remember((memory) =>
      withHealth(withTimes(memory, podStatus(view), view.nowMs), this.#pod, this.#probes.verdicts),
    );
    const status = podStatus({ ...view, memory: this.#memory });
    if (isDeepStrictEqual(status, this.#status)) return;
    this.#status = status;
    this.#dependencies.events.changed(status);
  }

  #remember(change: Change): Promise<void> {
    const memory = change(this.#memory);
    if (memory === this.#memory || isDeepStrictEqual(memory, this.#memory)) return Promise.resolve();
    this.#memory = memory;
    return this.#save(memory);
  }

  async #save(memory: PodMemory): Promise<void> {
    const outcome = outcomeOf({ ...this.#view(), memory });
    const isSaved = await this.#dependencies.events.remembered(this.#pod.uid, memory);
    if (!isSaved || outcome === undefined || outcome === this.#savedOutcome) return;
    this.#savedOutcome = outcome;
    this.wake();
  }

  async #rememberRemoval(change: Change): Promise<void> {
    const memory = change(this.#memory);
    await this.#dependencies.events.removed(this.#pod.uid, memory);
    this.#memory = memory;
  }

  #sleep(untilMs: number | undefined): Promise<void> {
    if (this.#woken) return Promise.resolve();
    const { clock } = this.#dependencies;
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
          : clock.schedule(Math.min(WAIT_MAX_MS, Math.max(0, untilMs - clock.monotonicMs())), wake);
    });
  }
}

/** Reports whether the pod has volumes whose content can change while containers run. */
function showsFiles({ volumes }: Pod): boolean {
  return volumes?.volumes.some(({ source }) => source.type === "files") ?? false;
}
