import type { Pod, PodMemory } from "./pod.ts";
import { allContainers, mainOf } from "./pod-containers.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

/** The container that a session is for. */
export interface FoundContainer {
  readonly container: string;
  readonly attempt: number;
  /** Undefined if it isn't running. */
  readonly id?: string;
  /** Absent: standard input is at its end. */
  readonly input?: "pipe" | "terminal";
}

/** Finds a container of the pod by its name; an empty name means the main one. Undefined if the pod has no such container. */
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
  const input = spec.tty ? "terminal" : spec.stdin ? "pipe" : undefined;
  return { container: spec.name, attempt, ...(live && { id: live.id }), ...(input && { input }) };
}
