import type { ContainerState, PodState, SandboxState, TerminationState } from "../journal/pod-state.ts";
import type { PodSandbox } from "../network/network.ts";
import type { ContainerMemory, PodMemory, StopCause, StopMemory, Termination } from "./pod.ts";

/** Converts a pod's memory into the journal's form. */
export function toPodState(memory: PodMemory): PodState {
  const { sandbox, ports, containers, startedAtMs, readyAtMs, begun, failure, removed } = memory;
  return {
    ...(sandbox && { sandbox: toSandboxState(sandbox) }),
    ...(ports && { portsAllocated: true }),
    hostPorts: ports ?? [],
    containers: mapValues(containers, toContainerState),
    ...(removed && { removed }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(readyAtMs !== undefined && { readyAtMs }),
    ...(begun && { begun }),
    ...(failure && { failure }),
  };
}

export function fromPodState(podUid: string, state: PodState): PodMemory {
  const { sandbox, portsAllocated, hostPorts, containers, startedAtMs, readyAtMs, begun, removed } = state;
  return {
    ...(sandbox && { sandbox: { podUid, ...sandbox } }),
    ...(portsAllocated && { ports: hostPorts }),
    containers: mapValues(containers, fromContainerState),
    removed: removed ?? false,
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(readyAtMs !== undefined && { readyAtMs }),
    ...(begun && { begun }),
    ...(state.failure && { failure: { ...state.failure, reason: "Evicted" } }),
  };
}

function toSandboxState({ namespacePath, address, address6 }: PodSandbox): SandboxState {
  return { namespacePath, address, ...(address6 !== undefined && { address6 }) };
}

function toContainerState(memory: ContainerMemory): ContainerState {
  const { attempt, phase, containerId, startedAtMs, restarts, crashes, notBeforeMs } = memory;
  const { lastTermination, earlier, postStart, health, stop } = memory;
  return {
    attempt,
    restartCount: restarts,
    crashes,
    ...(phase !== "new" && { phase }),
    ...(notBeforeMs > 0 && { retryAtMs: notBeforeMs }),
    ...(containerId !== undefined && { containerId }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastTermination && { lastTermination }),
    ...(earlier && { earlierTerminations: earlier }),
    ...(postStart && { postStart }),
    ...(health && { health }),
    ...(stop && { stop }),
  };
}

function fromContainerState(state: ContainerState): ContainerMemory {
  const { attempt, phase, containerId, startedAtMs, restartCount, crashes, retryAtMs } = state;
  const { lastTermination, earlierTerminations, postStart, health, stop } = state;
  return {
    attempt,
    phase: phase ?? "new",
    restarts: restartCount,
    crashes: crashes ?? 0,
    notBeforeMs: retryAtMs ?? 0,
    ...(containerId !== undefined && { containerId }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastTermination && { lastTermination: fromTermination(lastTermination) }),
    ...(earlierTerminations && { earlier: earlierTerminations.map(fromTermination) }),
    ...(postStart && { postStart }),
    ...(health && { health }),
    ...(stop && { stop: fromStop(stop) }),
  };
}

function fromTermination(state: TerminationState): Termination {
  const reason = REASONS.find((it) => it === state.reason) ?? "Error";
  return { ...state, reason, startedAtMs: state.startedAtMs ?? state.finishedAtMs };
}

function fromStop({ sinceMs, cause }: NonNullable<ContainerState["stop"]>): StopMemory {
  const reason = STOP_REASONS.find((it) => it === cause?.reason);
  return { sinceMs, ...(cause && reason && { cause: { reason, message: cause.message } }) };
}

const STOP_REASONS: readonly StopCause["reason"][] = [
  "LivenessProbeFailed",
  "StartupProbeFailed",
  "PostStartHookError",
];

const REASONS: readonly Termination["reason"][] = [
  "Completed",
  "Error",
  "OOMKilled",
  "HostRebooted",
  "Vanished",
  "StartError",
  ...STOP_REASONS,
];

function mapValues<From, To>(
  from: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]));
}
