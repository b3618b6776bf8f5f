import { withLinkedSignal } from "@forage/common/link-signals";
import { runPostStart } from "../../hooks/run-hook.ts";
import { execInRuntime } from "../../probes/exec-in-runtime.ts";
import { type ContainerMemory, memoryOf, type PodMemory, withContainer } from "../pod.ts";
import { allContainers } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import type { Change, StepContext, StepEffect } from "../step-context.ts";

/** Runs the hook of a container that was started just now; its failure is remembered as a stop to be made. */
export async function postStart(
  dependencies: PodDependencies,
  { view, signal, goalSignal, remember }: StepContext,
  container: string,
  id: string,
): Promise<StepEffect> {
  const { pod, memory } = view;
  const hook = allContainers(pod).find((it) => it.name === container)?.hooks?.postStart;
  if (hook === undefined || memory.sandbox === undefined) return {};
  // On disk first: whoever comes after a crash must not run it a second time.
  await remember(forRun(container, id, (it) => ({ ...it, postStart: "begun" })));
  const target = { address: memory.sandbox.address, exec: execInRuntime(dependencies.runtime, id) };
  const result = await withLinkedSignal([signal, goalSignal], (either) =>
    runPostStart(dependencies.hooks, hook, target, either),
  );
  switch (result.outcome) {
    case "done":
      return { change: forRun(container, id, (it) => ({ ...it, postStart: "done" })) };
    case "aborted":
      return {};
    case "failed": {
      // If the container ended under its hook, its own end is the better explanation.
      const found = await dependencies.runtime.inspect(id, signal);
      if (found?.state !== "running") {
        dependencies.observer.noteStopped([id]);
        return {};
      }
      const cause = { reason: "PostStartHookError", message: result.message } as const;
      const sinceMs = dependencies.clock.nowMs();
      return { change: forRun(container, id, (it) => ({ ...it, stop: { sinceMs, cause } })) };
    }
    default:
      return result satisfies never;
  }
}

/** Changes what is remembered of a container if that is still this run of it. */
export function forRun(
  container: string,
  id: string,
  change: (memory: ContainerMemory) => ContainerMemory,
): Change {
  return (memory: PodMemory) => {
    const known = memoryOf(memory, container);
    if (known.phase !== "started" || known.containerId !== id) return memory;
    return withContainer(memory, container, change(known));
  };
}
