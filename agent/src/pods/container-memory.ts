import { type BackOffLimits, backOffMs } from "./back-off.ts";
import {
  type ContainerMemory,
  memoryOf,
  type ObservedContainer,
  type PodMemory,
  type RestartPolicy,
  type Termination,
} from "./pod.ts";

export interface RestartLimits extends BackOffLimits {
  /** A container that ran this long starts over with its back-off. */
  readonly goodRunMs: number;
}

/** After a start that succeeded. */
export function started(
  memory: ContainerMemory,
  attempt: number,
  id: string,
  nowMs: number,
): ContainerMemory {
  const restarts = memory.lastTermination === undefined ? memory.restarts : memory.restarts + 1;
  return { ...memory, attempt, phase: "started", containerId: id, startedAtMs: nowMs, restarts };
}

/** A container found on the host that the memory doesn't know: this agent's predecessor started it. */
export function adopted(memory: ContainerMemory, found: ObservedContainer, nowMs: number): ContainerMemory {
  const restarts =
    memory.phase === "new" ? found.attempt - 1 : memory.restarts + (found.attempt > memory.attempt ? 1 : 0);
  return {
    ...memory,
    attempt: Math.max(memory.attempt, found.attempt),
    phase: "started",
    containerId: found.id,
    startedAtMs: found.startedAtMs ?? memory.startedAtMs ?? nowMs,
    restarts,
  };
}

/** After an end or a failed start: at once the first time, then with growing waits. */
export function ended(
  memory: ContainerMemory,
  termination: Termination,
  limits: RestartLimits,
): ContainerMemory {
  const ranMs = termination.finishedAtMs - termination.startedAtMs;
  const before = ranMs >= limits.goodRunMs ? 0 : memory.crashes;
  const { containerId: _, ...rest } = memory;
  return {
    ...rest,
    phase: "ended",
    crashes: before + 1,
    notBeforeMs: before === 0 ? 0 : termination.finishedAtMs + backOffMs(before, limits),
    lastTermination: termination,
  };
}

/** Whether the policy has it run (again), now or after its back-off. */
export function wantsStart(memory: ContainerMemory, policy: RestartPolicy): boolean {
  if (memory.phase === "new" || policy === "Always") return true;
  if (policy === "Never") return false;
  return memory.lastTermination?.exitCode !== 0;
}

/** What a pod's memory is worth on a host that was booted anew: its namespace and everything that ran are gone. */
export function afterReboot(memory: PodMemory, nowMs: number): PodMemory {
  const containers: Record<string, ContainerMemory> = {};
  for (const name of Object.keys(memory.containers)) {
    const old = memoryOf(memory, name);
    const { containerId: _, ...rest } = old;
    if (old.phase !== "started") {
      containers[name] = { ...rest, crashes: 0, notBeforeMs: 0 };
      continue;
    }
    containers[name] = {
      ...rest,
      phase: "ended",
      crashes: 0,
      notBeforeMs: 0,
      lastTermination: {
        exitCode: 255,
        signal: 0,
        reason: "HostRebooted",
        message: "the host was rebooted",
        startedAtMs: old.startedAtMs ?? nowMs,
        finishedAtMs: nowMs,
      },
    };
  }
  const { sandbox: _, readyAtMs: __, ...rest } = memory;
  return { ...rest, containers };
}
