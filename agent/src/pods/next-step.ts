import { type RestartLimits, wantsStart } from "./container-memory.ts";
import {
  type ContainerMemory,
  type Fault,
  type ImageState,
  memoryOf,
  type ObservedContainer,
  type Pod,
  type PodContainer,
  type PodMemory,
  type PullPolicy,
} from "./pod.ts";
import { type Decision, type Step, stepKey, type Wait } from "./step.ts";

/** Everything a decision about one pod is made from. */
export interface PodView {
  readonly pod: Pod;
  readonly goal: "run" | "remove";
  /** Set once the goal is "remove". */
  readonly stoppingSinceMs?: number;
  readonly containers: readonly ObservedContainer[];
  /** The runtime's list is in doubt: a call was cut off, its outcome is not known. */
  readonly stale: boolean;
  /** The kernel's rules are known to be the memory's ports. */
  readonly published: boolean;
  /** By the container's name. */
  readonly images: ReadonlyMap<string, ImageState>;
  readonly memory: PodMemory;
  /** By step key. */
  readonly faults: ReadonlyMap<string, Fault>;
  readonly nowMs: number;
}

// A shim that is starting up or shutting down shows no state for a moment; one that still has none after this is gone.
const UNKNOWN_STATE_MAX_MS = 30_000;
// A stop that failed this often is given up for removal by force.
const STOP_FAILURES_MAX = 3;
// What a sidecar gets to stop even when the main container has used up the grace period.
const SIDECAR_GRACE_MIN_MS = 2_000;

/**
 * The one decision: what to do next for a pod, or until when to wait. Each call starts from what is seen now,
 * so it never matters which event was missed or where the agent was stopped.
 */
export function nextStep(view: PodView, limits: RestartLimits): Decision {
  let untilMs: number | undefined;
  const waitUntil = (ms: number) => {
    untilMs = untilMs === undefined ? ms : Math.min(untilMs, ms);
  };
  for (const candidate of view.goal === "run" ? toRun(view, limits) : toRemove(view)) {
    if (candidate.kind === "wait") {
      if (candidate.untilMs !== undefined) waitUntil(candidate.untilMs);
      continue;
    }
    const fault = view.faults.get(stepKey(candidate));
    if (fault === undefined || fault.notBeforeMs <= view.nowMs) return { kind: "step", step: candidate };
    waitUntil(fault.notBeforeMs);
  }
  return untilMs === undefined ? { kind: "wait" } : { kind: "wait", untilMs };
}

/** Candidates in order of urgency. One that is yielded last depends on nothing after it having been done. */
function* toRun(view: PodView, limits: RestartLimits): Generator<Step | Wait> {
  const { pod, memory } = view;
  if (view.stale) return yield { kind: "look" };
  if (pod.problem !== undefined) return;
  const strays = view.containers.filter((it) => !belongs(it, pod));
  yield* discard(strays, pod.graceMs);
  for (const container of pod.containers) yield* fetchImage(view, container);
  if (memory.sandbox === undefined) {
    // What still runs is in a namespace that is no more.
    const cutOff = view.containers.filter((it) => belongs(it, pod) && isLive(it));
    if (cutOff.length > 0) return yield { kind: "stopContainers", ids: idsOf(cutOff), graceMs: pod.graceMs };
    return yield { kind: "attachSandbox" };
  }
  for (const container of pod.containers) yield* keepRunning(view, container, limits);
  if (view.published) return;
  yield memory.ports === undefined ? { kind: "allocatePorts" } : { kind: "publishPorts" };
}

function* keepRunning(view: PodView, spec: PodContainer, limits: RestartLimits): Generator<Step | Wait> {
  const { pod } = view;
  const memory = memoryOf(view.memory, spec.name);
  const mine = view.containers
    .filter((it) => it.container === spec.name && belongs(it, pod))
    .sort((a, b) => b.attempt - a.attempt);
  const [current, ...surplus] = mine.filter(isLive);
  if (current !== undefined) {
    if (surplus.length > 0) yield { kind: "stopContainers", ids: idsOf(surplus), graceMs: pod.graceMs };
    if (memory.phase !== "started" || memory.containerId !== current.id) {
      return yield { kind: "adopt", container: spec.name, id: current.id };
    }
    return yield* sweep(mine.filter((it) => !isLive(it) && it.state !== "unknown"));
  }
  const undecided = mine.filter((it) => isUndecided(it, view.nowMs));
  if (undecided.length > 0) {
    const sinceMs = Math.min(...undecided.map((it) => it.unknownSinceMs ?? view.nowMs));
    return yield { kind: "wait", untilMs: sinceMs + UNKNOWN_STATE_MAX_MS };
  }
  if (memory.phase === "started") return yield recordExit(spec.name, memory, mine);
  const [newest] = mine;
  if (newest !== undefined && newest.state === "exited" && newest.attempt > memory.attempt) {
    return yield { kind: "adopt", container: spec.name, id: newest.id };
  }
  // Made but never run, or lost by its shim: nothing can be learned from these.
  const halfMade = mine.filter((it) => it.state !== "exited");
  if (halfMade.length > 0) return yield { kind: "removeContainers", ids: idsOf(halfMade) };
  yield* sweep(mine.filter((it) => it.attempt < memory.attempt));
  // The namespace may hold others of this name that are not to run beside it.
  if (view.containers.some((it) => it.container === spec.name && isLive(it))) return;
  yield* start(view, spec, memory, newest, limits);
}

function* start(
  view: PodView,
  spec: PodContainer,
  memory: ContainerMemory,
  newest: ObservedContainer | undefined,
  limits: RestartLimits,
): Generator<Step | Wait> {
  if (!wantsStart(memory, view.pod.restartPolicy)) return;
  const dueMs = dueAt(memory, view.nowMs, limits);
  if (dueMs > view.nowMs) return yield { kind: "wait", untilMs: dueMs };
  if (view.images.get(spec.name)?.kind !== "present") return;
  const attempt = Math.max(memory.attempt, newest?.attempt ?? 0) + 1;
  yield { kind: "startContainer", container: spec.name, attempt };
}

function* fetchImage(view: PodView, spec: PodContainer): Generator<Step | Wait> {
  const memory = memoryOf(view.memory, spec.name);
  if (memory.phase === "started" || !wantsStart(memory, view.pod.restartPolicy)) return;
  const image = view.images.get(spec.name) ?? { kind: "unknown" };
  switch (image.kind) {
    case "present":
    case "fetching":
      return;
    case "failed":
      if (image.retryAtMs > view.nowMs) return yield { kind: "wait", untilMs: image.retryAtMs };
      break;
    case "unknown":
      break;
    default:
      image satisfies never;
  }
  yield {
    kind: "fetchImage",
    container: spec.name,
    image: spec.image,
    policy: effectivePolicy(spec, memory),
  };
}

/** A restart uses the image that the pod began with: it must neither wait for a registry nor change version. */
export function effectivePolicy(spec: PodContainer, memory: ContainerMemory): PullPolicy {
  return spec.pullPolicy === "Always" && memory.attempt > 0 ? "IfNotPresent" : spec.pullPolicy;
}

function* toRemove(view: PodView): Generator<Step | Wait> {
  // A start that was cut off may have had its effect only after the rest was gone.
  if (view.memory.removed && view.containers.length === 0) return;
  if (view.stale) return yield { kind: "look" };
  const live = view.containers.filter((it) => isLive(it) || isUndecided(it, view.nowMs));
  const stopFailures = view.faults.get("stopContainers")?.failures ?? 0;
  if (live.length > 0 && stopFailures < STOP_FAILURES_MAX) {
    const main = view.pod.containers.at(-1)?.name;
    const mains = live.filter((it) => it.container === main);
    const usedMs = view.nowMs - (view.stoppingSinceMs ?? view.nowMs);
    if (mains.length > 0)
      return yield { kind: "stopContainers", ids: idsOf(mains), graceMs: view.pod.graceMs };
    const graceMs = Math.max(SIDECAR_GRACE_MIN_MS, view.pod.graceMs - Math.max(0, usedMs));
    return yield { kind: "stopContainers", ids: idsOf(live), graceMs };
  }
  if (view.containers.length > 0) return yield { kind: "removeContainers", ids: idsOf(view.containers) };
  yield { kind: "cleanUp" };
}

/** The wall clock may have been set back since: no wait is longer than the longest back-off. */
function dueAt(memory: ContainerMemory, nowMs: number, limits: RestartLimits): number {
  return memory.notBeforeMs > nowMs + limits.capMs ? nowMs : memory.notBeforeMs;
}

function recordExit(container: string, memory: ContainerMemory, mine: readonly ObservedContainer[]): Step {
  const id = mine.find((it) => it.id === memory.containerId)?.id;
  return id === undefined ? { kind: "recordExit", container } : { kind: "recordExit", container, id };
}

function* discard(strays: readonly ObservedContainer[], graceMs: number): Generator<Step> {
  const live = strays.filter(isLive);
  if (live.length > 0) yield { kind: "stopContainers", ids: idsOf(live), graceMs };
  yield* sweep(strays.filter((it) => !isLive(it)));
}

function* sweep(dead: readonly ObservedContainer[]): Generator<Step> {
  if (dead.length > 0) yield { kind: "removeContainers", ids: idsOf(dead) };
}

function belongs(it: ObservedContainer, pod: Pod): boolean {
  return it.specHash === pod.specHash && pod.containers.some((spec) => spec.name === it.container);
}

function isLive(it: ObservedContainer): boolean {
  return it.state === "running" || it.state === "paused";
}

function isUndecided(it: ObservedContainer, nowMs: number): boolean {
  return it.state === "unknown" && nowMs - (it.unknownSinceMs ?? nowMs) < UNKNOWN_STATE_MAX_MS;
}

function idsOf(containers: readonly ObservedContainer[]): readonly string[] {
  return containers.map((it) => it.id);
}
