import { withLinkedSignal } from "@forage/common/link-signals";
import { runPostStart } from "../../hooks/run-hook.ts";
import { execInRuntime } from "../../probes/exec-in-runtime.ts";
import { type ContainerMemory, memoryOf, type PodMemory, withContainer } from "../pod.ts";
import { allContainers } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import type { Change, StepContext, StepEffect } from "../step-context.ts";

/**
 * Runs the post_start hook of a container that has just started. If the hook fails, records that the container has to
 * be stopped.
 */
export async function postStart(
  dependencies: PodDependencies,
  { view, signal, goalSignal, remember }: StepContext,
  container: string,
  id: string,
): Promise<StepEffect> {
  const { pod, memory } = view;
  const hook = allContainers(pod).find((it) => it.name === container)?.hooks?.postStart;
  if (hook === undefined || memory.sandbox === undefined) return {};
  // Write this to disk first. Otherwise the next agent would run the hook a second time after a crash.
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
      // If the container has ended during its hook, report the container's exit instead of the hook's failure.
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

/** Returns a change of the pod's memory that applies only while this run of the container is the remembered one. */
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
