import type { RestartLimits } from "../container-memory.ts";
import { allContainers, initContainersOf } from "../pod-containers.ts";
import { hasPorts, wantedPorts } from "../pod-ports.ts";
import { type Decision, type Step, stepKey, type Wait } from "../step.ts";
import { fetchImage, initialize, keepRunning, settle } from "./container-steps.ts";
import { belongs, isInitialized, isLive, outcomeOf, type PodView } from "./pod-view.ts";
import { discard, stop, stopInOrder, toRemove } from "./stop-steps.ts";

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
    const key = stepKey(candidate);
    if (view.underWay.has(key)) continue;
    const fault = view.faults.get(key);
    if (fault === undefined || fault.notBeforeMs <= view.monotonicMs)
      return { kind: "step", step: candidate };
    waitUntil(fault.notBeforeMs);
  }
  return untilMs === undefined ? { kind: "wait" } : { kind: "wait", untilMs };
}

/** Candidates in order of urgency. One that is yielded last depends on nothing after it having been done. */
function* toRun(view: PodView, limits: RestartLimits): Generator<Step | Wait> {
  const { pod, memory } = view;
  if (view.stale) return yield { kind: "look" };
  if (pod.problem !== undefined) return;
  yield* discard(
    view,
    view.containers.filter((it) => !belongs(it, pod)),
  );
  if (outcomeOf(view) !== undefined) return yield* toEnd(view);
  for (const container of allContainers(pod)) yield* fetchImage(view, container);
  if (memory.sandbox === undefined) {
    // Containers that still run are in a namespace that no longer exists.
    const cutOff = view.containers.filter((it) => belongs(it, pod) && isLive(it));
    if (cutOff.length === 0) return yield { kind: "attachSandbox" };
    for (const it of cutOff) yield stop(view, it);
    return;
  }
  if (view.volumesOutdated && view.containers.some(isLive)) yield { kind: "updateVolumes" };
  yield* toRunContainers(view, limits);
  if (!view.published)
    yield memory.ports === undefined ? { kind: "allocatePorts" } : { kind: "publishPorts" };
  else if (!hasPorts(memory.ports ?? [], wantedPorts(pod)))
    yield { kind: "updatePorts", ports: wantedPorts(pod) };
}

function* toRunContainers(view: PodView, limits: RestartLimits): Generator<Step | Wait> {
  if (!isInitialized(view)) {
    // The containers of the previous namespace have ended.
    for (const container of view.pod.containers) yield* settle(view, container);
    if (!(yield* initialize(view, limits))) return;
  }
  for (const container of view.pod.containers) yield* keepRunning(view, container, limits);
  // Nothing of these is needed any more, whatever became of them.
  const inits = initContainersOf(view.pod);
  yield* discard(
    view,
    view.containers.filter((it) => inits.some(({ name }) => name === it.container)),
  );
}

/** A pod that is over: what still runs ends, and it is noted how everything ended. */
function* toEnd(view: PodView): Generator<Step | Wait> {
  const { pod } = view;
  const live = view.containers.filter((it) => belongs(it, pod) && isLive(it));
  yield* stopInOrder(view, live);
  for (const spec of allContainers(pod)) {
    if (!live.some((it) => it.container === spec.name)) yield* settle(view, spec);
  }
  if (outcomeOf(view) !== view.savedOutcome) yield { kind: "saveOutcome" };
}
