import { GRACE_LEAST_MS } from "../../hooks/remaining-grace.ts";
import { memoryOf, type ObservedContainer, type StopCause } from "../pod.ts";
import { roleOf } from "../pod-containers.ts";
import type { Step, Wait } from "../step.ts";
import { isLive, isUndecided, type PodView } from "./pod-view.ts";

// After so many failed stops the container is removed by force.
const STOP_FAILURES_MAX = 3;

export function* toRemove(view: PodView): Generator<Step | Wait> {
  // A start that was cut off may have had its effect only after the rest was gone.
  if (view.memory.removed && view.containers.length === 0) return;
  if (view.stale) return yield { kind: "look" };
  const live = view.containers.filter((it) => isLive(it) || isUndecided(it, view.monotonicMs));
  if (live.length > 0) return yield* stopInOrder(view, live);
  if (view.containers.length > 0) return yield* sweep(view.containers);
  const { doubtUntilMs } = view;
  // A container's resources must not be removed just before it appears.
  if (doubtUntilMs !== undefined) {
    return yield doubtUntilMs > view.monotonicMs ? { kind: "wait", untilMs: doubtUntilMs } : { kind: "look" };
  }
  yield { kind: "cleanUp" };
}

/** Sidecars after all others. Yields nothing once none is live. */
export function* stopInOrder(view: PodView, live: readonly ObservedContainer[]): Generator<Step | Wait> {
  const first = live.filter((it) => roleOf(view.pod, it.container) !== "sidecar");
  const batch = first.length > 0 ? first : live;
  const stubborn = batch.filter((it) => stopFailuresOf(view, it.id) >= STOP_FAILURES_MAX);
  if (stubborn.length === batch.length) return yield* sweep(stubborn);
  // The shortest time for a sidecar, even when the main container has used up the grace period.
  const leastMs = first.length > 0 ? 0 : GRACE_LEAST_MS;
  const usedMs =
    first.length > 0 ? 0 : Math.max(0, view.monotonicMs - (view.stoppingSinceMs ?? view.monotonicMs));
  for (const it of batch) {
    if (stubborn.includes(it)) continue;
    yield stop(view, it, { graceMs: Math.max(leastMs, view.pod.graceMs - usedMs) });
  }
}

/** One whose stop had begun before goes on with what is left of its time. */
export function stop(
  view: PodView,
  { id, container }: ObservedContainer,
  how: { readonly graceMs?: number; readonly cause?: StopCause } = {},
): Step {
  const { graceMs = view.pod.graceMs, cause } = how;
  const memory = memoryOf(view.memory, container);
  const sinceMs = memory.containerId === id ? memory.stop?.sinceMs : undefined;
  // The time without an agent doesn't count, because the hook may not have begun.
  const leftMs =
    sinceMs === undefined ? graceMs : Math.max(GRACE_LEAST_MS, graceMs - Math.max(0, view.nowMs - sinceMs));
  return {
    kind: "stopContainer",
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
  if (dead.length > 0) yield { kind: "removeContainers", ids: dead.map((it) => it.id) };
}

function stopFailuresOf(view: PodView, id: string): number {
  return view.faults.get(`stopContainer/${id}`)?.failures ?? 0;
}
