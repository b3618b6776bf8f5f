import type { ContainerState, PodState } from "../journal/pod-state.ts";
import type { ContainerMemory, PodMemory, Termination } from "./pod.ts";

/** The memory in the form that the journal keeps. */
export function toPodState(memory: PodMemory): PodState {
  const { sandbox, ports, containers, startedAtMs, readyAtMs, removed } = memory;
  return {
    ...(sandbox && { sandbox: { namespacePath: sandbox.namespacePath, address: sandbox.address } }),
    ...(ports && { portsAllocated: true }),
    hostPorts: ports ?? [],
    containers: mapValues(containers, toContainerState),
    ...(removed && { removed }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(readyAtMs !== undefined && { readyAtMs }),
  };
}

export function fromPodState(podUid: string, state: PodState): PodMemory {
  const { sandbox, portsAllocated, hostPorts, containers, startedAtMs, readyAtMs, removed } = state;
  return {
    ...(sandbox && { sandbox: { podUid, ...sandbox } }),
    ...(portsAllocated && { ports: hostPorts }),
    containers: mapValues(containers, fromContainerState),
    removed: removed ?? false,
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(readyAtMs !== undefined && { readyAtMs }),
  };
}

function toContainerState(memory: ContainerMemory): ContainerState {
  const { attempt, phase, containerId, startedAtMs, restarts, crashes, notBeforeMs, lastTermination } =
    memory;
  return {
    attempt,
    restartCount: restarts,
    crashes,
    ...(phase !== "new" && { phase }),
    ...(notBeforeMs > 0 && { retryAtMs: notBeforeMs }),
    ...(containerId !== undefined && { containerId }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastTermination && { lastTermination }),
  };
}

function fromContainerState(state: ContainerState): ContainerMemory {
  const { attempt, phase, containerId, startedAtMs, restartCount, crashes, retryAtMs, lastTermination } =
    state;
  return {
    attempt,
    phase: phase ?? "new",
    restarts: restartCount,
    crashes: crashes ?? 0,
    notBeforeMs: retryAtMs ?? 0,
    ...(containerId !== undefined && { containerId }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(lastTermination && {
      lastTermination: {
        ...lastTermination,
        reason: reasonOf(lastTermination.reason),
        startedAtMs: lastTermination.startedAtMs ?? lastTermination.finishedAtMs,
      },
    }),
  };
}

const REASONS: readonly Termination["reason"][] = [
  "Completed",
  "Error",
  "OOMKilled",
  "HostRebooted",
  "Vanished",
  "StartError",
];

function reasonOf(text: string): Termination["reason"] {
  return REASONS.find((it) => it === text) ?? "Error";
}

function mapValues<From, To>(
  from: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]));
}
