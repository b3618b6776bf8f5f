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

// With the last one five: enough to see whether it always ends in the same way. They are sent up with each status.
const EARLIER_MAX = 4;
const EARLIER_MESSAGE_MAX = 1_000;
const STOP_REASONS: readonly StopReason[] = [
  "LivenessProbeFailed",
  "StartupProbeFailed",
  "PostStartHookError",
];

export interface RestartLimits extends BackOff {
  /** A container that ran this long starts over with its back-off. */
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

/** A container found on the host that the memory doesn't know: this agent's predecessor started it. */
export function adopted(memory: ContainerMemory, found: ObservedContainer, nowMs: number): ContainerMemory {
  const restarts =
    memory.phase === "new" ? found.attempt - 1 : memory.restarts + (found.attempt > memory.attempt ? 1 : 0);
  // The stored state of this very run is still valid.
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

/** Returns the memory after an end or a failed start: the first restart is immediate, later ones wait increasingly long. */
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

/** Reports whether the policy has it run (again), now or after its back-off. */
export function wantsStart(memory: ContainerMemory, policy: RestartPolicy): boolean {
  if (memory.phase === "new" || policy === "Always") return true;
  if (policy === "Never") return false;
  return memory.lastTermination === undefined || hasFailed(memory.lastTermination);
}

/** A container that was ended because it was found broken has failed, however politely it left. */
export function hasFailed({ exitCode, reason }: Termination): boolean {
  return exitCode !== 0 || STOP_REASONS.some((it) => it === reason);
}

/** Reports whether the container has ended successfully. */
export function isComplete({ phase, lastTermination }: ContainerMemory): boolean {
  return phase === "ended" && lastTermination !== undefined && !hasFailed(lastTermination);
}

/**
 * The pod gets a new namespace: its init containers have to run again, and the others only after them. `found` are the containers
 * on the host, none of which ran in the new namespace. A run of an init container that was not recorded before the old namespace
 * was lost counts as seen: adopting it would take the container for done in the new one.
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

/** Returns a pod's memory after a boot of its host: its namespace and all its processes are gone. */
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
