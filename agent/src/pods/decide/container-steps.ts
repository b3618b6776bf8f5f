import { isComplete, needsStart, type RestartLimits } from "../container-memory.ts";
import {
  type ContainerMemory,
  memoryOf,
  type ObservedContainer,
  type PodContainer,
  type PullPolicy,
} from "../pod.ts";
import { allContainers, initContainersOf, policyOf, roleOf } from "../pod-containers.ts";
import type { Step, Wait } from "../step.ts";
import {
  belongs,
  isLive,
  isPostStartOver,
  isUndecided,
  type PodView,
  sidecarsStarted,
  UNKNOWN_STATE_MAX_MS,
} from "./pod-view.ts";
import { stop, sweep } from "./stop-steps.ts";

/** Yields the steps that keep a container running and restart it by its policy. */
export function* keepRunning(
  view: PodView,
  spec: PodContainer,
  limits: RestartLimits,
): Generator<Step | Wait> {
  const memory = memoryOf(view.memory, spec.name);
  const mine = runsOf(view, spec);
  const [current, ...surplus] = mine.filter(isLive);
  if (current !== undefined) {
    for (const it of surplus) yield stop(view, it);
    yield* runningSteps(view, spec, current);
    return yield* sweep(mine.filter((it) => !isLive(it) && it.state !== "unknown"));
  }
  if (yield* settle(view, spec)) return;
  const [newest] = mine;
  yield* sweep(mine.filter((it) => it.attempt < memory.attempt));
  // Containers of the same name from another template may still run; they have to end first.
  if (view.containers.some((it) => it.container === spec.name && isLive(it))) return;
  yield* start(view, spec, newest, limits);
}

/** Records runs that have ended. Returns true if a step has to finish before anything else can be decided. */
export function* settle(view: PodView, spec: PodContainer): Generator<Step | Wait, boolean> {
  const memory = memoryOf(view.memory, spec.name);
  const mine = runsOf(view, spec);
  const undecided = mine.filter((it) => isUndecided(it, view.monotonicMs));
  if (undecided.length > 0) {
    const sinceMs = Math.min(...undecided.map((it) => it.unknownSinceMs ?? view.monotonicMs));
    yield { type: "wait", untilMs: sinceMs + UNKNOWN_STATE_MAX_MS };
    return true;
  }
  if (memory.phase === "started") {
    yield recordExit(spec.name, memory, mine);
    return true;
  }
  const [newest] = mine;
  if (newest !== undefined && newest.state === "exited" && newest.attempt > memory.attempt) {
    yield { type: "adopt", container: spec.name, id: newest.id };
    return true;
  }
  // These containers never ran or have lost their shim, so they have no exit to record.
  const halfMade = mine.filter((it) => it.state !== "exited");
  yield* sweep(halfMade);
  return halfMade.length > 0;
}

/** Runs the init containers one after the other, each to its end. Returns true once all have succeeded. */
export function* initialize(view: PodView, limits: RestartLimits): Generator<Step | Wait, boolean> {
  const done: ObservedContainer[] = [];
  for (const spec of initContainersOf(view.pod)) {
    const runs = runsOf(view, spec);
    if (runs.some(isLive) || !isComplete(memoryOf(view.memory, spec.name))) {
      yield* keepRunning(view, spec, limits);
      // Start the next init container before removing the finished ones.
      yield* sweep(done);
      return false;
    }
    done.push(...runs);
  }
  return true;
}

export function* fetchImage(view: PodView, spec: PodContainer): Generator<Step | Wait> {
  const memory = memoryOf(view.memory, spec.name);
  if (memory.phase === "started" || !needsStart(memory, policyOf(view.pod, spec.name))) return;
  const image = view.images.get(spec.name) ?? { type: "unknown" };
  switch (image.type) {
    case "present":
    case "fetching":
      return;
    case "failed":
      if (image.notBeforeMs > view.monotonicMs) return yield { type: "wait", untilMs: image.notBeforeMs };
      break;
    case "unknown":
      break;
    default:
      image satisfies never;
  }
  const policy = effectivePolicy(spec, memory);
  yield { type: "fetchImage", container: spec.name, image: spec.image, policy };
}

/**
 * Returns the pull policy for the container's next start. A restart uses the image of the first start: it neither waits
 * for a registry nor changes version.
 */
export function effectivePolicy(spec: PodContainer, memory: ContainerMemory): PullPolicy {
  return spec.pullPolicy === "Always" && memory.attempt > 0 ? "IfNotPresent" : spec.pullPolicy;
}

/** Yields the steps for a running container: its adoption, its hook, and its stop if it is unhealthy. */
function* runningSteps(
  view: PodView,
  spec: PodContainer,
  current: ObservedContainer,
): Generator<Step | Wait> {
  const { id } = current;
  const memory = memoryOf(view.memory, spec.name);
  if (memory.phase !== "started" || memory.containerId !== id) {
    return yield { type: "adopt", container: spec.name, id };
  }
  if (memory.stop !== undefined) return yield stop(view, current);
  if (!isPostStartOver(view, spec, id)) {
    if (memory.postStart === undefined) return yield { type: "postStart", container: spec.name, id };
    if (view.underWay.has(`postStart/${id}`)) return;
    const message = "the agent was restarted while the post_start hook ran, so what it has done is not known";
    return yield stop(view, current, { cause: { reason: "PostStartHookError", message } });
  }
  const verdict = view.verdicts.get(id);
  if (verdict?.restart === undefined) return;
  const reason = verdict.started ? "LivenessProbeFailed" : "StartupProbeFailed";
  yield stop(view, current, { cause: { reason, message: verdict.restart } });
}

function* start(
  view: PodView,
  spec: PodContainer,
  newest: ObservedContainer | undefined,
  limits: RestartLimits,
): Generator<Step | Wait> {
  const memory = memoryOf(view.memory, spec.name);
  if (!needsStart(memory, policyOf(view.pod, spec.name))) return;
  const waitMs = dueAt(memory, view.nowMs, limits) - view.nowMs;
  if (waitMs > 0) return yield { type: "wait", untilMs: view.monotonicMs + waitMs };
  if (!hasItsImages(view, spec)) return;
  if (roleOf(view.pod, spec.name) === "main" && view.memory.begun !== "main" && !sidecarsStarted(view))
    return;
  const attempt = Math.max(memory.attempt, newest?.attempt ?? 0) + 1;
  yield { type: "startContainer", container: spec.name, attempt };
}

/**
 * Reports whether all images are present. The first start of a pod waits for all of them, because a pod with a missing
 * image can't be completed.
 */
function hasItsImages(view: PodView, spec: PodContainer): boolean {
  const { pod, memory, images } = view;
  const hasBegun =
    memory.begun !== undefined ||
    initContainersOf(pod).some(({ name }) => memoryOf(memory, name).phase !== "new");
  const needed = hasBegun ? [spec] : allContainers(pod);
  return needed.every(({ name }) => images.get(name)?.type === "present");
}

function runsOf(view: PodView, spec: PodContainer): readonly ObservedContainer[] {
  return view.containers
    .filter((it) => it.container === spec.name && belongs(it, view.pod))
    .sort((a, b) => b.attempt - a.attempt);
}

/**
 * Returns the time of the next start. Because the wall clock may have been set back, the delay is at most the longest
 * back-off.
 */
function dueAt(memory: ContainerMemory, nowMs: number, limits: RestartLimits): number {
  return memory.notBeforeMs > nowMs + limits.capMs ? nowMs : memory.notBeforeMs;
}

function recordExit(container: string, memory: ContainerMemory, mine: readonly ObservedContainer[]): Step {
  const id = mine.find((it) => it.id === memory.containerId)?.id;
  return id === undefined ? { type: "recordExit", container } : { type: "recordExit", container, id };
}
