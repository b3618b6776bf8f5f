import type { RestartLimits } from "../container-memory.ts";
import { allContainers, initContainersOf } from "../pod-containers.ts";
import { desiredPorts, hasPorts } from "../pod-ports.ts";
import { type Decision, type Step, stepKey, type Wait } from "../step.ts";
import { fetchImage, initialize, keepRunning, settle } from "./container-steps.ts";
import { belongs, isInitialized, isLive, outcomeOf, type PodView } from "./pod-view.ts";
import { discard, stop, stopInOrder, toRemove } from "./stop-steps.ts";

/**
 * Decides what to do next for a pod, or until when to wait. Each call starts from the observed state, so missed events
 * and interruptions of the agent make no difference.
 */
export function nextStep(view: PodView, limits: RestartLimits): Decision {
  let untilMs: number | undefined;
  const waitUntil = (ms: number) => {
    untilMs = untilMs === undefined ? ms : Math.min(untilMs, ms);
  };
  for (const candidate of view.goal === "run" ? toRun(view, limits) : toRemove(view)) {
    if (candidate.type === "wait") {
      if (candidate.untilMs !== undefined) waitUntil(candidate.untilMs);
      continue;
    }
    const key = stepKey(candidate);
    if (view.underWay.has(key)) continue;
    const fault = view.faults.get(key);
    if (fault === undefined || fault.notBeforeMs <= view.monotonicMs)
      return { type: "step", step: candidate };
    waitUntil(fault.notBeforeMs);
  }
  return untilMs === undefined ? { type: "wait" } : { type: "wait", untilMs };
}

/** Yields possible steps in order of urgency. A step never depends on a later one. */
function* toRun(view: PodView, limits: RestartLimits): Generator<Step | Wait> {
  const { pod, memory } = view;
  if (view.stale) return yield { type: "inspect" };
  if (pod.problem !== undefined) return;
  yield* discard(
    view,
    view.containers.filter((it) => !belongs(it, pod)),
  );
  if (outcomeOf(view) !== undefined) return yield* toEnd(view);
  for (const container of allContainers(pod)) yield* fetchImage(view, container);
  if (memory.sandbox === undefined) {
    // These containers run in a namespace that no longer exists.
    const cutOff = view.containers.filter((it) => belongs(it, pod) && isLive(it));
    if (cutOff.length === 0) return yield { type: "attachSandbox" };
    for (const it of cutOff) yield stop(view, it);
    return;
  }
  if (view.volumesOutdated && view.containers.some(isLive)) yield { type: "updateVolumes" };
  yield* toRunContainers(view, limits);
  if (!view.published)
    yield memory.ports === undefined ? { type: "allocatePorts" } : { type: "publishPorts" };
  else if (!hasPorts(memory.ports ?? [], desiredPorts(pod)))
    yield { type: "updatePorts", ports: desiredPorts(pod) };
}

function* toRunContainers(view: PodView, limits: RestartLimits): Generator<Step | Wait> {
  if (!isInitialized(view)) {
    // The containers of the previous namespace have ended.
    for (const container of view.pod.containers) yield* settle(view, container);
    if (!(yield* initialize(view, limits))) return;
  }
  for (const container of view.pod.containers) yield* keepRunning(view, container, limits);
  // Init containers are not needed any more, whatever their exit.
  const inits = initContainersOf(view.pod);
  yield* discard(
    view,
    view.containers.filter((it) => inits.some(({ name }) => name === it.container)),
  );
}

/** Ends a finished pod: stops running containers and records how each container ended. */
function* toEnd(view: PodView): Generator<Step | Wait> {
  const { pod } = view;
  const live = view.containers.filter((it) => belongs(it, pod) && isLive(it));
  yield* stopInOrder(view, live);
  for (const spec of allContainers(pod)) {
    if (!live.some((it) => it.container === spec.name)) yield* settle(view, spec);
  }
  if (outcomeOf(view) !== view.savedOutcome) yield { type: "saveOutcome" };
}
