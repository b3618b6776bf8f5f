import { addressesOf, type PortMapping } from "../../network/network.ts";
import { hasFailed, isComplete, needsStart } from "../container-memory.ts";
import {
  type ImageFailure,
  memoryOf,
  type ObservedContainer,
  type PodContainer,
  type StartBlock,
  type Termination,
} from "../pod.ts";
import { initContainersOf, policyOf, roleOf } from "../pod-containers.ts";
import { healthOf, isInitialized, isLive, liveRunOf, outcomeOf, type PodView } from "./pod-view.ts";

/** The status of a pod that the agent reports. Times are milliseconds since the epoch. */
export interface PodStatus {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly specHash: string;
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** The reason in CamelCase. It and the message are empty if the pod has no problem. */
  readonly reason: string;
  readonly message: string;
  readonly podIp: string;
  /** One address for each family; the first is `podIp`. */
  readonly podIps: readonly string[];
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
  /** The terminations before the current state, newest first; bounded. */
  readonly terminations: readonly Termination[];
  readonly restarts: number;
  /** Whether the container is ready. For an init container: whether it has succeeded. */
  readonly ready: boolean;
  readonly init: boolean;
  /** Whether the post_start hook is done and the startup probe has passed. */
  readonly started: boolean;
}

export type ContainerState =
  | {
      readonly type: "waiting";
      readonly reason: WaitingReason;
      readonly message: string;
      readonly retryAtMs?: number;
      /** The progress of the image pull. */
      readonly pulledPercent?: number;
    }
  | { readonly type: "running"; readonly startedAtMs: number }
  | { readonly type: "terminated"; readonly termination: Termination };

export type WaitingReason =
  | "ContainerCreating"
  | "ImagePull"
  | ImageFailure
  | StartBlock
  | "PodInitializing"
  | "CrashLoopBackOff"
  | "CreateError";

interface Cause {
  readonly reason: string;
  readonly message: string;
}

const NO_CAUSE: Cause = { reason: "", message: "" };

/**
 * Returns the pod's status. Equal views give equal statuses, so comparing two statuses shows whether an update is due.
 * Pure.
 */
export function podStatus(view: PodView): PodStatus {
  const { pod, memory } = view;
  const inits = initContainersOf(pod).map((spec) => containerStatus(view, spec));
  const others = pod.containers.map((spec) => containerStatus(view, spec));
  const containers = [...inits, ...others];
  const phase = phaseOf(view, others);
  const ready =
    phase === "RUNNING" &&
    outcomeOf(view) === undefined &&
    view.published &&
    memory.sandbox !== undefined &&
    others.every((it) => it.ready);
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
    podIps: memory.sandbox === undefined ? [] : addressesOf(memory.sandbox),
    containers: phase === "REMOVED" ? [] : containers,
    hostPorts: phase === "REMOVED" ? [] : (memory.ports ?? []),
    ...(memory.startedAtMs === undefined ? {} : { startedAtMs: memory.startedAtMs }),
    ...(memory.readyAtMs === undefined || !ready ? {} : { readyAtMs: memory.readyAtMs }),
  };
}

function phaseOf(view: PodView, containers: readonly ContainerStatus[]): PodPhase {
  if (view.memory.removed) return "REMOVED";
  if (view.goal === "remove") return "STOPPING";
  if (view.pod.problem !== undefined) return "FAILED";
  const outcome = outcomeOf(view);
  // The pod is not over before its sidecars have ended. An outcome that is not on disk could be lost in a reboot.
  const isOver = view.memory.failure !== undefined || !view.containers.some(isLive);
  if (outcome !== undefined && isOver && outcome === view.savedOutcome) return outcome;
  // Once all containers have run, the pod stays RUNNING while one of them restarts, as in Kubernetes.
  const begun =
    view.memory.startedAtMs !== undefined || containers.every((it) => it.state.type !== "waiting");
  return begun ? "RUNNING" : "PENDING";
}

function containerStatus(view: PodView, spec: PodContainer): ContainerStatus {
  const memory = memoryOf(view.memory, spec.name);
  const run = liveRunOf(view, spec.name);
  const live = run?.state === "running" ? run : undefined;
  const state = containerState(view, spec, live);
  const { lastTermination, earlier = [] } = memory;
  const last = lastTermination === undefined || state.type === "terminated" ? [] : [lastTermination];
  const init = roleOf(view.pod, spec.name) === "init";
  const isUp = state.type === "running" && !init;
  const health = healthOf(view, spec);
  return {
    name: spec.name,
    image: spec.image,
    containerId: live?.id ?? memory.containerId ?? "",
    state,
    terminations: [...last, ...earlier],
    restarts: memory.restarts,
    ready: init ? live === undefined && isComplete(memory) : isUp && health.ready,
    init,
    started: isUp && health.started,
  };
}

function containerState(
  view: PodView,
  spec: PodContainer,
  live: ObservedContainer | undefined,
): ContainerState {
  const memory = memoryOf(view.memory, spec.name);
  if (live !== undefined) {
    return { type: "running", startedAtMs: memory.startedAtMs ?? live.startedAtMs ?? view.nowMs };
  }
  const last = memory.lastTermination;
  if (memory.phase === "ended" && last !== undefined) {
    const isOver = !needsStart(memory, policyOf(view.pod, spec.name)) || outcomeOf(view) !== undefined;
    if (isOver || view.goal === "remove") {
      return { type: "terminated", termination: last };
    }
    if (memory.notBeforeMs > view.nowMs) {
      return { type: "waiting", ...backOffReason(last, memory.notBeforeMs), retryAtMs: memory.notBeforeMs };
    }
  }
  const fault = view.faults.get(`startContainer/${spec.name}`);
  if (fault !== undefined) {
    const { message, reason = "CreateError", retryAtMs } = fault;
    return { type: "waiting", reason, message, retryAtMs };
  }
  const image = waitingForImage(view, spec);
  if (image !== undefined) return image;
  const waitsForInit = roleOf(view.pod, spec.name) !== "init" && !isInitialized(view);
  return { type: "waiting", reason: waitsForInit ? "PodInitializing" : "ContainerCreating", message: "" };
}

/** Returns why the container waits for its restart. The end itself is reported as the last termination. */
function backOffReason(last: Termination, notBeforeMs: number): { reason: WaitingReason; message: string } {
  if (last.reason === "StartError") return { reason: "CreateError", message: last.message };
  const seconds = Math.round((notBeforeMs - last.finishedAtMs) / 1000);
  return { reason: "CrashLoopBackOff", message: `starts again ${seconds} s after its end` };
}

function waitingForImage(view: PodView, spec: PodContainer): ContainerState | undefined {
  const image = view.images.get(spec.name) ?? { type: "unknown" };
  switch (image.type) {
    case "present":
    case "unknown":
      return undefined;
    case "fetching":
      if (!image.pulling) return undefined;
      return {
        type: "waiting",
        reason: "ImagePull",
        message: fetching(spec.image, image.progress),
        ...(image.percent !== undefined && { pulledPercent: image.percent }),
      };
    case "failed":
      return { type: "waiting", reason: image.reason, message: image.message, retryAtMs: image.retryAtMs };
    default:
      return image satisfies never;
  }
}

function fetching(image: string, progress: string | undefined): string {
  return progress === undefined ? `pulling ${image}` : `pulling ${image}: ${progress}`;
}

// Faults that block the whole pod, with their reasons.
const POD_FAULTS = [
  ["inspect", "RuntimeUnavailable"],
  ["attachSandbox", "NetworkSetupFailed"],
  ["allocatePorts", "NetworkSetupFailed"],
  ["publishPorts", "NetworkSetupFailed"],
  ["saveOutcome", "OutcomeNotSaved"],
  ["removeContainers", "RemoveFailed"],
  ["cleanUp", "RemoveFailed"],
] as const;

function causeOf(view: PodView, containers: readonly ContainerStatus[]): Cause {
  if (view.pod.problem !== undefined) return { reason: "InvalidSpec", message: view.pod.problem };
  for (const [key, reason] of POD_FAULTS) {
    const fault = view.faults.get(key);
    if (fault !== undefined) return { reason, message: fault.message };
  }
  const stopFault = [...view.faults].find(([key]) => key.startsWith("stopContainer/"));
  if (stopFault !== undefined) return { reason: "StopFailed", message: stopFault[1].message };
  const { failure } = view.memory;
  if (failure !== undefined) return failure;
  if (view.goal === "remove") return NO_CAUSE;
  for (const { name, state, terminations } of containers) {
    const [lastTermination] = terminations;
    if (state.type === "waiting" && state.reason === "CrashLoopBackOff" && lastTermination !== undefined) {
      return { reason: state.reason, message: `container ${name} ${describeEnd(lastTermination)}` };
    }
    if (state.type === "waiting" && state.message !== "") {
      return { reason: state.reason, message: `container ${name}: ${state.message}` };
    }
    if (state.type === "terminated" && hasFailed(state.termination)) {
      return {
        reason: state.termination.reason,
        message: `container ${name}: ${describeEnd(state.termination)}`,
      };
    }
  }
  return notReady(view);
}

/** Returns the reason why the first running container is not ready. */
function notReady(view: PodView): Cause {
  if (outcomeOf(view) !== undefined) return NO_CAUSE;
  for (const spec of view.pod.containers) {
    const { ready, why } = healthOf(view, spec);
    if (!ready && why !== undefined) {
      return { reason: "ContainersNotReady", message: `container ${spec.name}: ${why}` };
    }
  }
  return NO_CAUSE;
}

/** Describes an end: "exited with code 1: last words", "was killed by signal 9", … */
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
    case "LivenessProbeFailed":
    case "StartupProbeFailed":
    case "PostStartHookError":
      return `was ended${words}`;
    case "Completed":
    case "Error":
      return signal > 0 ? `was killed by signal ${signal}${words}` : `exited with code ${exitCode}${words}`;
    default:
      return reason satisfies never;
  }
}
