import {
  type ContainerTerminated,
  PodPhase,
  type ContainerStatus as WireContainerStatus,
  type PodStatus as WirePodStatus,
} from "@forage/proto/forage/agent/v1/agent";
import type { ContainerStatus, PodStatus } from "../pods/decide/pod-status.ts";
import type { Termination } from "../pods/pod.ts";
import { toTimestamp } from "./timestamp.ts";

export function encodeStatus(status: PodStatus): WirePodStatus {
  const { uid, namespace, name, ready, reason, message, podIp, podIps, specHash, startedAtMs, readyAtMs } =
    status;
  return {
    uid,
    namespace,
    name,
    phase: PodPhase[status.phase],
    ready,
    reason,
    message,
    podIp,
    podIps: [...podIps],
    specHash,
    containers: status.containers.map(encodeContainer),
    hostPorts: status.hostPorts.map((it) => ({ ...it })),
    startedAt: startedAtMs === undefined ? undefined : toTimestamp(startedAtMs),
    readyAt: readyAtMs === undefined ? undefined : toTimestamp(readyAtMs),
  };
}

function encodeContainer(status: ContainerStatus): WireContainerStatus {
  const { name, image, containerId, terminations, restarts, ready, init, started } = status;
  const encoded = terminations.map(encodeTermination);
  return {
    name,
    image,
    containerId,
    state: encodeState(status.state),
    lastTermination: encoded[0],
    restartCount: restarts,
    ready,
    terminations: encoded,
    init,
    started,
  };
}

function encodeState(state: ContainerStatus["state"]): WireContainerStatus["state"] {
  switch (state.type) {
    case "waiting": {
      const { reason, message, retryAtMs, pulledPercent } = state;
      const retryAt = retryAtMs === undefined ? undefined : toTimestamp(retryAtMs);
      return { $case: "waiting", value: { reason, message, retryAt, pulledPercent } };
    }
    case "running":
      return { $case: "running", value: { startedAt: toTimestamp(state.startedAtMs) } };
    case "terminated":
      return { $case: "terminated", value: encodeTermination(state.termination) };
    default:
      return state satisfies never;
  }
}

function encodeTermination(termination: Termination): ContainerTerminated {
  const { exitCode, signal, reason, message, startedAtMs, finishedAtMs } = termination;
  return {
    exitCode,
    signal,
    reason,
    message,
    startedAt: toTimestamp(startedAtMs),
    finishedAt: toTimestamp(finishedAtMs),
  };
}
