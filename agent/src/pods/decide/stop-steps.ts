import { GRACE_LEAST_MS } from "../../hooks/remaining-grace.ts";
import { memoryOf, type ObservedContainer, type StopCause } from "../pod.ts";
import { roleOf } from "../pod-containers.ts";
import type { Step, Wait } from "../step.ts";
import { isLive, isUndecided, type PodView } from "./pod-view.ts";

// After this many failed stops the container is removed by force.
const STOP_FAILURES_MAX = 3;

export function* toRemove(view: PodView): Generator<Step | Wait> {
  // An interrupted start may have taken effect after everything else was removed.
  if (view.memory.removed && view.containers.length === 0) return;
  if (view.stale) return yield { type: "inspect" };
  const live = view.containers.filter((it) => isLive(it) || isUndecided(it, view.monotonicMs));
  if (live.length > 0) return yield* stopInOrder(view, live);
  if (view.containers.length > 0) return yield* sweep(view.containers);
  const { startUncertainUntilMs } = view;
  // A container may still appear, so its resources must not be removed yet.
  if (startUncertainUntilMs !== undefined) {
    return yield startUncertainUntilMs > view.monotonicMs
      ? { type: "wait", untilMs: startUncertainUntilMs }
      : { type: "inspect" };
  }
  yield { type: "cleanUp" };
}

/** Yields the stops of live containers; sidecars stop after all others. Yields nothing if no container is live. */
export function* stopInOrder(view: PodView, live: readonly ObservedContainer[]): Generator<Step | Wait> {
  const first = live.filter((it) => roleOf(view.pod, it.container) !== "sidecar");
  const batch = first.length > 0 ? first : live;
  const stubborn = batch.filter((it) => stopFailuresOf(view, it.id) >= STOP_FAILURES_MAX);
  if (stubborn.length === batch.length) return yield* sweep(stubborn);
  // A sidecar gets the shortest grace period even if the main container has used up the whole one.
  const leastMs = first.length > 0 ? 0 : GRACE_LEAST_MS;
  const usedMs =
    first.length > 0 ? 0 : Math.max(0, view.monotonicMs - (view.stoppingSinceMs ?? view.monotonicMs));
  for (const it of batch) {
    if (stubborn.includes(it)) continue;
    yield stop(view, it, { graceMs: Math.max(leastMs, view.pod.graceMs - usedMs) });
  }
}

/**
 * Returns the step that stops a container. A stop that had begun earlier continues with the rest of its grace period.
 */
export function stop(
  view: PodView,
  { id, container }: ObservedContainer,
  how: { readonly graceMs?: number; readonly cause?: StopCause } = {},
): Step {
  const { graceMs = view.pod.graceMs, cause } = how;
  const memory = memoryOf(view.memory, container);
  const sinceMs = memory.containerId === id ? memory.stop?.sinceMs : undefined;
  // Time without an agent may exceed the grace period, so at least the shortest one remains for the hook and the
  // signal.
  const leftMs =
    sinceMs === undefined ? graceMs : Math.max(GRACE_LEAST_MS, graceMs - Math.max(0, view.nowMs - sinceMs));
  return {
    type: "stopContainer",
    container,
    id,
    graceMs: Math.min(graceMs, leftMs),
    ...(cause && { cause }),
  };
}

export function* discard(view: PodView, strays: readonly ObservedContainer[]): Generator<Step> {
  for (const it of strays) if (isLive(it)) yield stop(view, it);
  yield* sweep(strays.filter((it) => !isLive(it)));
}

export function* sweep(dead: readonly ObservedContainer[]): Generator<Step> {
  if (dead.length > 0) yield { type: "removeContainers", ids: dead.map((it) => it.id) };
}

function stopFailuresOf(view: PodView, id: string): number {
  return view.faults.get(`stopContainer/${id}`)?.failures ?? 0;
}
