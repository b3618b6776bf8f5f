import type { ProbeVerdict } from "../../probes/probe-machine.ts";
import { hasFailed, isComplete, needsStart } from "../container-memory.ts";
import {
  type Fault,
  type ImageState,
  memoryOf,
  type ObservedContainer,
  type Pod,
  type PodContainer,
  type PodMemory,
} from "../pod.ts";
import { allContainers, initContainersOf, mainOf, policyOf, sidecarsOf } from "../pod-containers.ts";

export type PodOutcome = "SUCCEEDED" | "FAILED";

/** The inputs of a decision about one pod. */
export interface PodView {
  readonly pod: Pod;
  readonly goal: "run" | "remove";
  /** The monotonic time at which the goal became "remove". Unset for other goals. */
  readonly stoppingSinceMs?: number;
  readonly containers: readonly ObservedContainer[];
  /** The runtime's list may be out of date: a call was interrupted, and its outcome is unknown. */
  readonly stale: boolean;
  /**
   * Set after a start that was interrupted and may still take effect: when that is ruled out, by the monotonic clock.
   */
  readonly startUncertainUntilMs?: number;
  /** Whether the kernel's rules are known to match the ports in the memory. */
  readonly published: boolean;
  /** Whether the volumes may show content other than that of the pod's specification. */
  readonly volumesOutdated: boolean;
  /** Image states by container name. */
  readonly images: ReadonlyMap<string, ImageState>;
  /** Verdicts of probed containers by runtime id. */
  readonly verdicts: ReadonlyMap<string, ProbeVerdict>;
  readonly memory: PodMemory;
  /** The pod's outcome by the memory on disk. An outcome is reported only once it is on disk. */
  readonly savedOutcome: PodOutcome | undefined;
  /** Failed steps by step key. */
  readonly faults: ReadonlyMap<string, Fault>;
  /** The keys of running background steps. */
  readonly underWay: ReadonlySet<string>;
  /** The wall clock, for times that are stored or displayed. */
  readonly nowMs: number;
  /** The monotonic clock, for waits and durations. */
  readonly monotonicMs: number;
}

// A shim that is starting or stopping reports no state for a moment. A container whose state is unknown for longer
// counts as gone.
export const UNKNOWN_STATE_MAX_MS = 30_000;

export function isLive(it: ObservedContainer): boolean {
  return it.state === "running" || it.state === "paused";
}

export function isUndecided(it: ObservedContainer, monotonicMs: number): boolean {
  return it.state === "unknown" && monotonicMs - (it.unknownSinceMs ?? monotonicMs) < UNKNOWN_STATE_MAX_MS;
}

export function belongs(it: ObservedContainer, pod: Pod): boolean {
  return it.specHash === pod.specHash && allContainers(pod).some((spec) => spec.name === it.container);
}

/** Returns the newest live run of a container of this template, which counts as its current run. */
export function liveRunOf(view: PodView, container: string): ObservedContainer | undefined {
  let newest: ObservedContainer | undefined;
  for (const it of view.containers) {
    if (it.container !== container || !isLive(it) || !belongs(it, view.pod)) continue;
    if (newest === undefined || it.attempt > newest.attempt) newest = it;
  }
  return newest;
}

/** Reports whether the pod's init containers are done in its current namespace. */
export function isInitialized(view: PodView): boolean {
  const { pod, memory } = view;
  if (memory.begun !== undefined) return true;
  // The start may not be recorded yet.
  if (pod.containers.some(({ name }) => liveRunOf(view, name) !== undefined)) return true;
  return initContainersOf(pod).every(
    ({ name }) => isComplete(memoryOf(memory, name)) && liveRunOf(view, name) === undefined,
  );
}

/**
 * Returns the outcome of a pod whose containers will not start again. Sidecars don't count. Undefined while one may
 * still start.
 */
export function outcomeOf(view: PodView): PodOutcome | undefined {
  const { pod, memory } = view;
  if (memory.failure !== undefined) return "FAILED";
  const main = mainOf(pod);
  if (main === undefined || pod.restartPolicy === "Always") return undefined;
  const brokenInit = initContainersOf(pod).some(
    (spec) => isOver(view, spec) && !isComplete(memoryOf(memory, spec.name)),
  );
  if (brokenInit && !isInitialized(view)) return "FAILED";
  const { lastTermination } = memoryOf(memory, main.name);
  if (lastTermination === undefined || !isOver(view, main)) return undefined;
  return hasFailed(lastTermination) ? "FAILED" : "SUCCEEDED";
}

function isOver(view: PodView, { name }: PodContainer): boolean {
  const memory = memoryOf(view.memory, name);
  return (
    memory.phase === "ended" &&
    !needsStart(memory, policyOf(view.pod, name)) &&
    !view.containers.some((it) => it.container === name && it.attempt > memory.attempt)
  );
}

export interface ContainerHealth {
  /** Whether the hook is done and the startup probe has passed. */
  readonly started: boolean;
  readonly ready: boolean;
  readonly why?: string;
}

const DOWN: ContainerHealth = { started: false, ready: false };

/** Returns the health of the container's current run. */
export function healthOf(view: PodView, spec: PodContainer): ContainerHealth {
  const live = liveRunOf(view, spec.name);
  if (live === undefined) return DOWN;
  const memory = memoryOf(view.memory, spec.name);
  const { postStart } = spec.hooks ?? {};
  const isKnown = memory.phase === "started" && memory.containerId === live.id;
  if (isKnown && memory.stop !== undefined) {
    const { cause } = memory.stop;
    return {
      ...DOWN,
      why: cause === undefined ? "it is being stopped" : `it is being restarted: ${cause.message}`,
    };
  }
  if (postStart !== undefined && !(isKnown && isPostStartOver(view, spec, live.id))) {
    return { ...DOWN, why: "its post_start hook has not ended yet" };
  }
  if (!hasProbes(spec)) return { started: true, ready: true };
  const verdict = view.verdicts.get(live.id);
  if (verdict === undefined) return (isKnown ? memory.health : undefined) ?? DOWN;
  const { started, ready, why } = verdict;
  return { started, ready, ...(why !== undefined && { why }) };
}

export function hasProbes({ probes }: PodContainer): boolean {
  return probes !== undefined && Object.keys(probes).length > 0;
}

/**
 * Reports whether the post_start hook is over. A hook whose process was lost can't be repeated; if the container can't
 * be restarted either, the hook counts as done.
 */
export function isPostStartOver(view: PodView, spec: PodContainer, id: string): boolean {
  const { postStart } = memoryOf(view.memory, spec.name);
  if (spec.hooks?.postStart === undefined || postStart === "done") return true;
  if (postStart === undefined || view.underWay.has(`postStart/${id}`)) return false;
  return policyOf(view.pod, spec.name) === "Never";
}

export function sidecarsStarted(view: PodView): boolean {
  return sidecarsOf(view.pod).every((spec) => healthOf(view, spec).started);
}
