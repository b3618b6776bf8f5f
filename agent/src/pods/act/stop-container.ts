import { remainingGraceMs } from "../../hooks/remaining-grace.ts";
import { runPreStop } from "../../hooks/run-hook.ts";
import { execInRuntime } from "../../probes/exec-in-runtime.ts";
import { allContainers } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import type { Step } from "../step.ts";
import type { StepContext, StepEffect } from "../step-context.ts";
import { forRun } from "./post-start.ts";

/** Runs the pre_stop hook, sends the stop signal and finally kills the container, all within the grace period. */
export async function stopContainer(
  dependencies: PodDependencies,
  context: StepContext,
  { container, id, graceMs, cause }: Extract<Step, { readonly type: "stopContainer" }>,
): Promise<StepEffect> {
  const { view, signal, remember } = context;
  dependencies.probes.unwatch(id);
  const spec = allContainers(view.pod).find((it) => it.name === container);
  const hook = spec?.hooks?.preStop;
  const { sandbox } = view.memory;
  const isRunning = view.containers.some((it) => it.id === id && it.state === "running");
  if (cause !== undefined || hook !== undefined) {
    const sinceMs = dependencies.clock.nowMs();
    // With this record a restarted agent continues the stop with the rest of the grace period.
    await remember(
      forRun(container, id, (it) => ({ ...it, stop: it.stop ?? { sinceMs, ...(cause && { cause }) } })),
    );
  }
  let leftMs = graceMs;
  if (hook !== undefined && sandbox !== undefined && isRunning && graceMs > 0) {
    const beganMs = dependencies.clock.monotonicMs();
    const target = { address: sandbox.address, exec: execInRuntime(dependencies.runtime, id) };
    const result = await runPreStop(dependencies.hooks, hook, target, graceMs, signal);
    if (result.outcome === "failed") dependencies.events.hookFailed(view.pod.uid, container, result.message);
    leftMs = remainingGraceMs(graceMs, beganMs, dependencies.clock.monotonicMs());
  }
  // Stopping takes up to the grace period, so it does not occupy a slot of the gate. The call itself is cheap.
  await dependencies.runtime.stop(id, leftMs, signal);
  dependencies.observer.noteStopped([id]);
  return {};
}
