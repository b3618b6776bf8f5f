import type { PortMapping } from "../network/network.ts";
import { wantsStart } from "./container-memory.ts";
import type { PodView } from "./next-step.ts";
import {
  type ImageFailure,
  memoryOf,
  type ObservedContainer,
  type PodContainer,
  type PodMemory,
  type Termination,
} from "./pod.ts";

/** What the agent tells of a pod. Times are milliseconds since the epoch. */
export interface PodStatus {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly specHash: string;
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** One word, and a sentence; both empty when all is well. */
  readonly reason: string;
  readonly message: string;
  readonly podIp: string;
  readonly containers: readonly ContainerStatus[];
  readonly hostPorts: readonly PortMapping[];
  readonly startedAtMs?: number;
  readonly readyAtMs?: number;
}

export type PodPhase = "PENDING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPING" | "REMOVED";

export interface ContainerStatus {
  readonly name: string;
  readonly image: string;
  readonly containerId: string;
  readonly state: ContainerState;
  readonly lastTermination?: Termination;
  readonly restarts: number;
  readonly ready: boolean;
}

export type ContainerState =
  | {
      readonly kind: "waiting";
      readonly reason: WaitingReason;
      readonly message: string;
      readonly retryAtMs?: number;
    }
  | { readonly kind: "running"; readonly startedAtMs: number }
  | { readonly kind: "terminated"; readonly termination: Termination };

export type WaitingReason =
  | "ContainerCreating"
  | "ImagePull"
  | ImageFailure
  | "CrashLoopBackOff"
  | "CreateError";

interface Cause {
  readonly reason: string;
  readonly message: string;
}

const NO_CAUSE: Cause = { reason: "", message: "" };

/** Pure: the same view gives an equal status, so comparing two tells whether anything is worth sending. */
export function podStatus(view: PodView): PodStatus {
  const { pod, memory } = view;
  const containers = pod.containers.map((spec) => containerStatus(view, spec));
  const phase = phaseOf(view, containers);
  const ready =
    phase === "RUNNING" &&
    view.published &&
    memory.sandbox !== undefined &&
    containers.every((it) => it.ready);
  const cause = ready ? NO_CAUSE : causeOf(view, containers);
  return {
    uid: pod.uid,
    namespace: pod.namespace,
    name: pod.name,
    specHash: pod.specHash,
    phase,
    ready,
    ...cause,
    podIp: memory.sandbox?.address ?? "",
    containers: phase === "REMOVED" ? [] : containers,
    hostPorts: phase === "REMOVED" ? [] : (memory.ports ?? []),
    ...(memory.startedAtMs === undefined ? {} : { startedAtMs: memory.startedAtMs }),
    ...(memory.readyAtMs === undefined || !ready ? {} : { readyAtMs: memory.readyAtMs }),
  };
}

/** Remembers when the pod ran and when it last became ready. The same object if nothing changed. */
export function withTimes(memory: PodMemory, status: PodStatus, nowMs: number): PodMemory {
  const { readyAtMs, ...rest } = memory;
  const startedAtMs = memory.startedAtMs ?? (status.phase === "RUNNING" ? nowMs : undefined);
  const nextReadyAtMs = status.ready ? (readyAtMs ?? nowMs) : undefined;
  if (startedAtMs === memory.startedAtMs && nextReadyAtMs === readyAtMs) return memory;
  return {
    ...rest,
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(nextReadyAtMs === undefined ? {} : { readyAtMs: nextReadyAtMs }),
  };
}

function phaseOf(view: PodView, containers: readonly ContainerStatus[]): PodPhase {
  if (view.memory.removed) return "REMOVED";
  if (view.goal === "remove") return "STOPPING";
  if (view.pod.problem !== undefined) return "FAILED";
  const terminated = containers.flatMap((it) => (it.state.kind === "terminated" ? it.state.termination : []));
  if (containers.length > 0 && terminated.length === containers.length) {
    return terminated.every((it) => it.exitCode === 0) ? "SUCCEEDED" : "FAILED";
  }
  // Once all have run the pod stays RUNNING while one of them restarts, as Kubernetes has it.
  const begun =
    view.memory.startedAtMs !== undefined || containers.every((it) => it.state.kind !== "waiting");
  return begun ? "RUNNING" : "PENDING";
}

function containerStatus(view: PodView, spec: PodContainer): ContainerStatus {
  const memory = memoryOf(view.memory, spec.name);
  const live = view.containers.find(
    (it) => it.container === spec.name && it.specHash === view.pod.specHash && it.state === "running",
  );
  const state = containerState(view, spec, live);
  const past = state.kind === "terminated" ? undefined : memory.lastTermination;
  return {
    name: spec.name,
    image: spec.image,
    containerId: live?.id ?? memory.containerId ?? "",
    state,
    ...(past === undefined ? {} : { lastTermination: past }),
    restarts: memory.restarts,
    ready: isReady(state),
  };
}

/** The seam for probes: so far a container is ready while it runs. */
function isReady(state: ContainerState): boolean {
  return state.kind === "running";
}

function containerState(
  view: PodView,
  spec: PodContainer,
  live: ObservedContainer | undefined,
): ContainerState {
  const memory = memoryOf(view.memory, spec.name);
  if (live !== undefined) {
    return { kind: "running", startedAtMs: memory.startedAtMs ?? live.startedAtMs ?? view.nowMs };
  }
  const last = memory.lastTermination;
  if (memory.phase === "ended" && last !== undefined) {
    if (!wantsStart(memory, view.pod.restartPolicy) || view.goal === "remove") {
      return { kind: "terminated", termination: last };
    }
    if (memory.notBeforeMs > view.nowMs) {
      return { kind: "waiting", ...heldBack(last, memory.notBeforeMs), retryAtMs: memory.notBeforeMs };
    }
  }
  const fault = view.faults.get(`startContainer/${spec.name}`);
  if (fault !== undefined) {
    return { kind: "waiting", reason: "CreateError", message: fault.message, retryAtMs: fault.notBeforeMs };
  }
  return waitingForImage(view, spec) ?? { kind: "waiting", reason: "ContainerCreating", message: "" };
}

/** The end itself is told as the last termination. */
function heldBack(last: Termination, notBeforeMs: number): { reason: WaitingReason; message: string } {
  if (last.reason === "StartError") return { reason: "CreateError", message: last.message };
  const seconds = Math.round((notBeforeMs - last.finishedAtMs) / 1000);
  return { reason: "CrashLoopBackOff", message: `starts again ${seconds} s after its end` };
}

function waitingForImage(view: PodView, spec: PodContainer): ContainerState | undefined {
  const image = view.images.get(spec.name) ?? { kind: "unknown" };
  switch (image.kind) {
    case "present":
    case "unknown":
      return undefined;
    case "fetching":
      if (!image.pulling) return undefined;
      return { kind: "waiting", reason: "ImagePull", message: `fetching ${spec.image}` };
    case "failed":
      return { kind: "waiting", reason: image.reason, message: image.message, retryAtMs: image.retryAtMs };
    default:
      return image satisfies never;
  }
}

// Faults that hold the whole pod up, and the word for each.
const POD_FAULTS = [
  ["look", "RuntimeUnavailable"],
  ["attachSandbox", "NetworkSetupFailed"],
  ["allocatePorts", "NetworkSetupFailed"],
  ["publishPorts", "NetworkSetupFailed"],
  ["stopContainers", "StopFailed"],
  ["removeContainers", "RemoveFailed"],
  ["cleanUp", "RemoveFailed"],
] as const;

function causeOf(view: PodView, containers: readonly ContainerStatus[]): Cause {
  if (view.pod.problem !== undefined) return { reason: "InvalidSpec", message: view.pod.problem };
  for (const [key, reason] of POD_FAULTS) {
    const fault = view.faults.get(key);
    if (fault !== undefined) return { reason, message: fault.message };
  }
  if (view.goal === "remove") return NO_CAUSE;
  for (const { name, state, lastTermination } of containers) {
    if (state.kind === "waiting" && state.reason === "CrashLoopBackOff" && lastTermination !== undefined) {
      return { reason: state.reason, message: `container ${name} ${describeEnd(lastTermination)}` };
    }
    if (state.kind === "waiting" && state.message !== "") {
      return { reason: state.reason, message: `container ${name}: ${state.message}` };
    }
    if (state.kind === "terminated" && state.termination.exitCode !== 0) {
      return {
        reason: state.termination.reason,
        message: `container ${name}: ${describeEnd(state.termination)}`,
      };
    }
  }
  return NO_CAUSE;
}

/** "exited with code 1: last words", "killed by signal 9", "out of memory: …" */
function describeEnd(termination: Termination): string {
  const { reason, exitCode, signal, message } = termination;
  const words = message === "" ? "" : `: ${message}`;
  switch (reason) {
    case "StartError":
      return `could not be started${words}`;
    case "OOMKilled":
      return `was killed for using more memory than its limit${words}`;
    case "HostRebooted":
    case "Vanished":
      return message;
    case "Completed":
    case "Error":
      return signal > 0 ? `was ended by signal ${signal}${words}` : `exited with code ${exitCode}${words}`;
    default:
      return reason satisfies never;
  }
}
