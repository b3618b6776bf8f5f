import type { PodSandbox, PortMapping } from "../network/network.ts";
import { withBegun } from "./act/start-container.ts";
import { adopted } from "./container-memory.ts";
import { belongs, hasProbes, isLive } from "./decide/pod-view.ts";
import {
  memoryOf,
  type ObservedContainer,
  type Pod,
  type PodContainer,
  type PodMemory,
  type Termination,
  withContainer,
} from "./pod.ts";
import { allContainers, initContainersOf, roleOf } from "./pod-containers.ts";

/** The parts of a pod on the host whose memory was lost. */
export interface PodOnHost {
  readonly containers: readonly ObservedContainer[];
  readonly sandbox: PodSandbox;
  /** Undefined if unknown. */
  readonly ports?: readonly PortMapping[];
}

/** Reports whether containers of the pod run in a sandbox that the pod does not remember. */
export function hasForgotten(pod: Pod, memory: PodMemory, containers: readonly ObservedContainer[]): boolean {
  return memory.sandbox === undefined && containers.some((it) => belongs(it, pod) && isLive(it));
}

/**
 * Rebuilds the memory of a pod from its running containers. They count as started and their hooks as done: running a
 * hook twice would do more harm than not finishing a hook that the agent's end had interrupted.
 */
export function recoveredMemory(pod: Pod, lost: PodMemory, found: PodOnHost, nowMs: number): PodMemory {
  const { sandbox, ports, containers } = found;
  let memory: PodMemory = { ...lost, sandbox, ...(ports && { ports }) };
  for (const spec of allContainers(pod)) {
    const current = newestLive(pod, spec, containers);
    const before = memoryOf(memory, spec.name);
    if (current === undefined || before.phase === "started") continue;
    const containerMemory = {
      ...adopted(before, current, nowMs),
      ...(spec.hooks?.postStart && { postStart: "done" as const }),
      // Until the first probe, assume that the container is healthy.
      ...(hasProbes(spec) && { health: { started: true, ready: true } }),
    };
    memory = withBegun(withContainer(memory, spec.name, containerMemory), roleOf(pod, spec.name));
  }
  return memory.begun === undefined ? memory : withInitialized(memory, pod, nowMs);
}

/** Marks the init containers as done, because other containers run only after them. */
function withInitialized(memory: PodMemory, pod: Pod, nowMs: number): PodMemory {
  const completed: Termination = {
    ...{ exitCode: 0, signal: 0, reason: "Completed", message: "" },
    ...{ startedAtMs: nowMs, finishedAtMs: nowMs },
  };
  let initialized = memory;
  for (const { name } of initContainersOf(pod)) {
    const before = memoryOf(memory, name);
    if (before.phase !== "new") continue;
    const done = { ...before, attempt: 1, phase: "ended", lastTermination: completed } as const;
    initialized = withContainer(initialized, name, done);
  }
  return initialized;
}

function newestLive(
  pod: Pod,
  { name }: PodContainer,
  containers: readonly ObservedContainer[],
): ObservedContainer | undefined {
  return containers
    .filter((it) => it.container === name && belongs(it, pod) && isLive(it))
    .sort((a, b) => b.attempt - a.attempt)[0];
}
