import { ended } from "../container-memory.ts";
import {
  type ContainerMemory,
  memoryOf,
  type ObservedContainer,
  type Termination,
  withContainer,
} from "../pod.ts";
import { roleOf } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import type { StepContext, StepEffect } from "../step-context.ts";

/** Records how a run ended. `id` is undefined if the container no longer exists. */
export async function recordExit(
  dependencies: PodDependencies,
  { view, signal }: StepContext,
  container: string,
  id: string | undefined,
): Promise<StepEffect> {
  const { pod } = view;
  const memory = memoryOf(view.memory, container);
  const found = view.containers.find((it) => it.id === id);
  const seen = found && { ...found, oomKilled: await wasOomKilled(dependencies, found) };
  const known =
    seen?.exitCode === undefined && id !== undefined ? await inspect(dependencies, id, signal) : undefined;
  const lastLines = await dependencies.files.lastLines(pod.uid, container, memory.attempt);
  const termination = terminationOf(memory, { ...seen, ...known }, lastLines, dependencies.clock.nowMs());
  return {
    change: (now) =>
      withContainer(now, container, ended(memoryOf(now, container), termination, dependencies.restartLimits)),
    // The init container is removed in the next step. After that, only this record shows that it is done.
    ...(roleOf(pod, container) === "init" && { durable: true }),
  };
}

/**
 * Reports whether the kernel killed a process of the container for lack of memory. The OOM event may arrive late or,
 * for short-lived containers, never; the kernel's counter is reliable.
 */
async function wasOomKilled(
  { runtime }: PodDependencies,
  { id, oomKilled }: ObservedContainer,
): Promise<boolean> {
  return oomKilled === true || (await runtime.oomKills(id)) > 0;
}

async function inspect(
  dependencies: PodDependencies,
  id: string,
  signal: AbortSignal,
): Promise<Partial<ObservedContainer>> {
  const found = await dependencies.runtime.inspect(id, signal);
  return {
    ...(found?.exitCode === undefined ? {} : { exitCode: found.exitCode }),
    ...(found?.finishedAtMs === undefined ? {} : { finishedAtMs: found.finishedAtMs }),
  };
}

function terminationOf(
  memory: ContainerMemory,
  seen: Partial<ObservedContainer>,
  lastLines: string,
  nowMs: number,
): Termination {
  const finishedAtMs = Math.min(seen.finishedAtMs ?? nowMs, nowMs);
  const times = { startedAtMs: Math.min(memory.startedAtMs ?? finishedAtMs, finishedAtMs), finishedAtMs };
  const { cause } = memory.stop ?? {};
  if (seen.exitCode === undefined) {
    const message = "the container was removed from outside Forage";
    return { exitCode: 255, signal: 0, reason: "Vanished", message, ...times };
  }
  const exitCode = seen.exitCode;
  // Shells report death by a signal as exit code 128 plus its number; the highest signal is 64.
  const signal = exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : 0;
  if (cause !== undefined) {
    const message = lastLines === "" ? cause.message : `${cause.message}\n${lastLines}`;
    return { exitCode, signal, reason: cause.reason, message, ...times };
  }
  const reason = seen.oomKilled === true ? "OOMKilled" : exitCode === 0 ? "Completed" : "Error";
  return { exitCode, signal, reason, message: lastLines, ...times };
}
