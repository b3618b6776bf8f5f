import type { Pod, PodMemory } from "./pod.ts";
import { allContainers, mainOf } from "./pod-containers.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

/** The container that a session attaches to. */
export interface FoundContainer {
  readonly container: string;
  readonly attempt: number;
  /** The runtime's id. Undefined if the container isn't running. */
  readonly id?: string;
  /** Absent if standard input is closed. */
  readonly input?: "pipe" | "terminal";
}

/**
 * Finds a container of the pod by its name; an empty name means the main container. Returns undefined if the pod has no
 * such container.
 */
export function findContainer(
  { pod, memory }: { readonly pod: Pod; readonly memory: PodMemory },
  name: string,
  observer: Pick<RuntimeObserver, "containersOf">,
): FoundContainer | undefined {
  const spec = name === "" ? mainOf(pod) : allContainers(pod).find((it) => it.name === name);
  if (spec === undefined) return undefined;
  const live = observer
    .containersOf(pod.uid)
    .find((it) => it.container === spec.name && it.state === "running");
  const attempt = memory.containers[spec.name]?.attempt ?? 0;
  const input = spec.stdin ? (spec.tty ? "terminal" : "pipe") : undefined;
  return { container: spec.name, attempt, ...(live && { id: live.id }), ...(input && { input }) };
}

/** Identifies a run of a container by its attempt number. */
export interface ContainerRun {
  readonly container: string;
  readonly attempt: number;
}

/**
 * Returns the exit code of a run that has ended. Returns undefined if it is still running or its exit code is not known
 * any more. Pure.
 */
export function exitCodeOf(
  { pod, memory }: { readonly pod: Pod; readonly memory: PodMemory },
  { container, attempt }: ContainerRun,
  observer: Pick<RuntimeObserver, "containersOf">,
): number | undefined {
  const observed = observer
    .containersOf(pod.uid)
    .find((it) => it.container === container && it.attempt === attempt);
  if (observed?.state === "running") return undefined;
  if (observed?.exitCode !== undefined) return observed.exitCode;
  const known = memory.containers[container];
  // The end of the newest run is remembered until the next run ends.
  const lastEnded = known?.phase === "ended" ? known.attempt : (known?.attempt ?? 0) - 1;
  return lastEnded === attempt ? known?.lastTermination?.exitCode : undefined;
}
