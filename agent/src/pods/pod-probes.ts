import { execInRuntime } from "../probes/exec-in-runtime.ts";
import type { ProbeVerdict } from "../probes/probe-machine.ts";
import { hasProbes, isPostStartOver, liveRunOf, outcomeOf, type PodView } from "./decide/pod-view.ts";
import { memoryOf, type PodContainer } from "./pod.ts";
import type { PodDependencies } from "./pod-dependencies.ts";

/** Registers the containers of one pod with the host's probe runner. */
export class PodProbes {
  readonly #dependencies: Pick<PodDependencies, "probes" | "runtime">;
  #verdicts: ReadonlyMap<string, ProbeVerdict> = new Map();

  constructor(dependencies: Pick<PodDependencies, "probes" | "runtime">) {
    this.#dependencies = dependencies;
  }

  /** Returns the verdicts as of the last `follow`, by runtime id. */
  get verdicts(): ReadonlyMap<string, ProbeVerdict> {
    return this.#verdicts;
  }

  /** Starts and stops probes so that exactly the required ones run. */
  follow(view: PodView): void {
    const verdicts = new Map<string, ProbeVerdict>();
    if (view.goal === "run" && outcomeOf(view) === undefined) {
      for (const spec of view.pod.containers) {
        const id = this.#probedRun(view, spec);
        if (id !== undefined) verdicts.set(id, this.#watch(view, spec, id));
      }
    }
    for (const id of this.#verdicts.keys()) if (!verdicts.has(id)) this.#dependencies.probes.unwatch(id);
    this.#verdicts = verdicts;
  }

  close(): void {
    for (const id of this.#verdicts.keys()) this.#dependencies.probes.unwatch(id);
    this.#verdicts = new Map();
  }

  #probedRun(view: PodView, spec: PodContainer): string | undefined {
    if (!hasProbes(spec) || view.memory.sandbox === undefined) return undefined;
    const live = liveRunOf(view, spec.name);
    const { phase, containerId, stop } = memoryOf(view.memory, spec.name);
    if (live?.state !== "running" || phase !== "started" || containerId !== live.id) return undefined;
    return stop === undefined && isPostStartOver(view, spec, live.id) ? live.id : undefined;
  }

  #watch({ memory, nowMs }: PodView, { name, probes = {} }: PodContainer, id: string): ProbeVerdict {
    const { startedAtMs = nowMs, health } = memoryOf(memory, name);
    return this.#dependencies.probes.watch({
      id,
      probes,
      target: { address: memory.sandbox?.address ?? "", exec: execInRuntime(this.#dependencies.runtime, id) },
      startedAtMs,
      ...(health && { before: health }),
    });
  }
}
