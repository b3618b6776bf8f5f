import { type BackOff, backOffMs } from "@forage/common/back-off";
import {
  type ContainerMemory,
  memoryOf,
  type ObservedContainer,
  type PodMemory,
  type RestartPolicy,
  type StopReason,
  type Termination,
} from "./pod.ts";

// Five with the last one: enough to see whether the container always ends in the same way. Each status contains them.
const EARLIER_MAX = 4;
const EARLIER_MESSAGE_MAX = 1_000;
const STOP_REASONS: readonly StopReason[] = [
  "LivenessProbeFailed",
  "StartupProbeFailed",
  "PostStartHookError",
];

export interface RestartLimits extends BackOff {
  /** A run of at least this duration resets the back-off. */
  readonly goodRunMs: number;
}

/** Returns the memory after a successful start. */
export function started(
  memory: ContainerMemory,
  attempt: number,
  id: string,
  nowMs: number,
): ContainerMemory {
  const restarts = memory.lastTermination === undefined ? memory.restarts : memory.restarts + 1;
  return { ...betweenRuns(memory), attempt, phase: "started", containerId: id, startedAtMs: nowMs, restarts };
}

/**
 * Returns the memory with a container that was found on the host and is not recorded, because an earlier agent started
 * it.
 */
export function adopted(memory: ContainerMemory, found: ObservedContainer, nowMs: number): ContainerMemory {
  const restarts =
    memory.phase === "new" ? found.attempt - 1 : memory.restarts + (found.attempt > memory.attempt ? 1 : 0);
  // Keep the recorded state if it belongs to this run.
  const before = memory.containerId === found.id ? memory : betweenRuns(memory);
  return {
    ...before,
    attempt: Math.max(memory.attempt, found.attempt),
    phase: "started",
    containerId: found.id,
    startedAtMs: found.startedAtMs ?? memory.startedAtMs ?? nowMs,
    restarts,
  };
}

/**
 * Returns the memory after an end or a failed start. The first restart is immediate; later ones wait increasingly long.
 */
export function ended(
  memory: ContainerMemory,
  termination: Termination,
  limits: RestartLimits,
): ContainerMemory {
  const ranMs = termination.finishedAtMs - termination.startedAtMs;
  const before = ranMs >= limits.goodRunMs ? 0 : memory.crashes;
  return {
    ...betweenRuns(memory),
    phase: "ended",
    crashes: before + 1,
    notBeforeMs: before === 0 ? 0 : termination.finishedAtMs + backOffMs(before, limits),
    ...withTermination(memory, termination),
  };
}

/** Reports whether the restart policy requires another start, now or after the back-off. */
export function needsStart(memory: ContainerMemory, policy: RestartPolicy): boolean {
  if (memory.phase === "new" || policy === "Always") return true;
  if (policy === "Never") return false;
  return memory.lastTermination === undefined || hasFailed(memory.lastTermination);
}

/**
 * Reports whether the container has failed. A container that was stopped because it was unhealthy has failed, whatever
 * its exit code.
 */
export function hasFailed({ exitCode, reason }: Termination): boolean {
  return exitCode !== 0 || STOP_REASONS.some((it) => it === reason);
}

/** Reports whether the container has ended successfully. */
export function isComplete({ phase, lastTermination }: ContainerMemory): boolean {
  return phase === "ended" && lastTermination !== undefined && !hasFailed(lastTermination);
}

/**
 * Returns the memory for a new namespace, in which the init containers have to run again before the others. `found` are
 * the containers on the host, none of which ran in the new namespace. A run of an init container that was not recorded
 * before the old namespace was lost counts as an attempt. Otherwise adopting it would mark the init container as done
 * in the new namespace.
 */
export function inNewSandbox(
  memory: PodMemory,
  initContainers: readonly string[],
  found: readonly Pick<ObservedContainer, "container" | "attempt">[],
): PodMemory {
  const { begun: _, ...rest } = memory;
  const containers = { ...memory.containers };
  for (const name of initContainers) {
    const runs = found.filter(({ container }) => container === name);
    if (containers[name] === undefined && runs.length === 0) continue;
    const old = memoryOf(memory, name);
    const attempt = Math.max(old.attempt, ...runs.map((run) => run.attempt));
    containers[name] = { ...betweenRuns(old), attempt, phase: "new", crashes: 0, notBeforeMs: 0 };
  }
  return { ...rest, containers };
}

/** Returns the memory without the fields that belong to one run. */
function betweenRuns(memory: ContainerMemory): ContainerMemory {
  const { containerId: _, postStart: _p, health: _h, stop: _s, ...rest } = memory;
  return rest;
}

function withTermination(
  { lastTermination, earlier = [] }: ContainerMemory,
  termination: Termination,
): Pick<ContainerMemory, "lastTermination" | "earlier"> {
  if (lastTermination === undefined) return { lastTermination: termination };
  const message = lastTermination.message.slice(0, EARLIER_MESSAGE_MAX);
  return {
    lastTermination: termination,
    earlier: [{ ...lastTermination, message }, ...earlier].slice(0, EARLIER_MAX),
  };
}

/** Returns a pod's memory after a reboot of its host, which has ended its namespace and all its processes. */
export function afterReboot(memory: PodMemory, nowMs: number): PodMemory {
  const containers: Record<string, ContainerMemory> = {};
  for (const name of Object.keys(memory.containers)) {
    const old = memoryOf(memory, name);
    const rest = betweenRuns(old);
    if (old.phase !== "started") {
      containers[name] = { ...rest, crashes: 0, notBeforeMs: 0 };
      continue;
    }
    containers[name] = {
      ...rest,
      phase: "ended",
      crashes: 0,
      notBeforeMs: 0,
      ...withTermination(old, {
        exitCode: 255,
        signal: 0,
        reason: "HostRebooted",
        message: "the host was rebooted",
        startedAtMs: old.startedAtMs ?? nowMs,
        finishedAtMs: nowMs,
      }),
    };
  }
  const { sandbox: _, readyAtMs: __, ...rest } = memory;
  return { ...rest, containers };
}
