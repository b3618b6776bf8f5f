import { isReady } from "../../endpoints/readiness.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import { availableAtMs, stableMsOf } from "./availability.ts";
import { currentPods } from "./current-pods.ts";
import { evaluateRollout, rolloutUpdateTimesMs } from "./evaluate-rollout.ts";
import type { Hold } from "./hold.ts";
import { failureOf } from "./pod-failure.ts";
import { prefetchStatus } from "./prefetch-status.ts";
import { rollForward } from "./roll-forward.ts";
import { rolloutStateOf } from "./rollout-state.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

/**
 * Returns the next steps towards the resource's specification. They keep the number of pods within the update limits. Pure.
 */
export function planWorkload(input: WorkloadInput): WorkloadStep[] {
  const steps: WorkloadStep[] = [];
  const active: PodEntry[] = [];
  const stopping: PodEntry[] = [];
  for (const pod of input.pods) {
    const why = nothingLeft(pod, input);
    if (why !== undefined) steps.push({ type: "forget-pod", pod, why });
    else if (pod.record.stoppingSince === undefined) active.push(pod);
    else stopping.push(pod);
  }
  const { resource } = input;
  if (resource === undefined || resource.record.deleting) {
    for (const pod of active) steps.push({ type: "stop-pod", pod, why: "its workload was deleted" });
    if (resource !== undefined && active.length + stopping.length === 0)
      steps.push({ type: "forget-resource" });
    return steps;
  }
  const { workload, applied } = resource;
  const rolloutState = applied && rolloutStateOf(input, resource, applied);
  const start = input.held ? undefined : rolloutState?.start;
  if (start !== undefined) steps.unshift(start);
  const staying: PodEntry[] = [];
  for (const pod of active) {
    const why = spent(pod, input) ?? (start && hopeless(pod, applied, input));
    if (why !== undefined) steps.push({ type: "stop-pod", pod, why });
    // Pods that are marked to leave their nodes need a replacement. `addDrainStops` decides when they stop.
    else if (pod.record.drainingSince === undefined) staying.push(pod);
  }
  if (workload === undefined || rolloutState === undefined) return steps;
  const hold: Hold = input.held ? { type: "held" } : rolloutState.hold;
  const ahead = once(() => prefetchStatus({ workload, staying, stopping, hold }, input));
  const current = once(() => currentPods(workload, staying));
  const context = { rolloutState, workload, staying, stopping, current, ahead };
  const update = start === undefined && !input.held ? evaluateRollout(context, input) : undefined;
  if (update !== undefined) steps.unshift(update);
  // When the effective revision changes, the next evaluation plans the steps for the new one.
  if (update !== undefined && update.attempt.rolledBackTo !== rolloutState.attempt.rolledBackTo) return steps;
  const { before } = rolloutState;
  const stableMs = stableMsOf(workload, input);
  const roll = { workload, before, staying, stopping, current, hold, stableMs, ahead };
  return [...steps, ...rollForward(roll, input)];
}

/** Returns the milliseconds after which the next step may change without an event. Undefined: never. */
export function nextEvaluationMs(input: WorkloadInput): number | undefined {
  const { resource, nowMs, pods } = input;
  // Times in the past are part of this evaluation. Timers are not exact, so an evaluation that is slightly early must not
  // spin.
  let nextMs = Number.POSITIVE_INFINITY;
  const note = (ms: number | undefined): void => {
    if (ms !== undefined && ms > nowMs && ms < nextMs) nextMs = ms;
  };
  for (const pod of pods) note(replaceAtMs(pod, input));
  if (resource?.workload !== undefined && resource.applied !== undefined && !resource.record.deleting) {
    const { workload } = resource;
    const stableMs = stableMsOf(workload, input);
    const staying = pods.filter((pod) => pod.record.stoppingSince === undefined);
    for (const pod of staying) {
      if (pod.status?.ready !== true) continue;
      const availableMs = availableAtMs(pod, stableMs, input);
      if (availableMs > nowMs && isReady(pod, input.nodeReady)) note(availableMs);
    }
    const rolloutState = rolloutStateOf(input, resource, resource.applied);
    const ahead = () => new Map();
    const current = (): readonly PodEntry[] => currentPods(workload, staying);
    for (const ms of rolloutUpdateTimesMs(
      { rolloutState, workload, staying, stopping: [], current, ahead },
      input,
    ))
      note(ms);
  }
  return nextMs === Number.POSITIVE_INFINITY ? undefined : Math.max(MIN_CHECK_MS, nextMs - nowMs);
}

const MIN_CHECK_MS = 10;

/** Returns the reason why a pod can't serve any more and needs a replacement. Undefined: it can. */
function spent(pod: PodEntry, input: WorkloadInput): string | undefined {
  const { status } = pod;
  // The node has stopped the pod for good and won't start it again.
  if (status?.phase === FAILED_PHASE && status.reason === "Evicted")
    return `its node has evicted it: ${status.message}`;
  return (replaceAtMs(pod, input) ?? Infinity) <= input.nowMs ? "its containers have ended" : undefined;
}

/** Returns the reason why a new rollout attempt replaces a pod that failed in an earlier attempt. */
function hopeless(
  pod: PodEntry,
  applied: Workload | undefined,
  { nowMs, limits }: WorkloadInput,
): string | undefined {
  if (!applied?.currentHashes.has(pod.record.templateHash)) return undefined;
  const failure = failureOf([pod], { nowMs, limits, unschedulable: () => undefined, isReady: () => false });
  return failure && `it failed before the rollout began: ${failure.message}`;
}

/** The delay before an ended pod is replaced, so that programs that end at once don't keep the cluster busy. */
const ENDED_POD_STAYS_MS = 10_000;

/**
 * Returns the time at which an ended pod is replaced. Pods can end with restart policies other than Always, and a service
 * replaces them.
 */
function replaceAtMs(
  { record, status, observedAtMs = 0 }: PodEntry,
  { since = (atMs) => atMs }: WorkloadInput,
): number | undefined {
  const ended = status?.phase === SUCCEEDED_PHASE || status?.phase === FAILED_PHASE;
  const policy = record.template?.podConfig?.restartPolicy ?? "";
  if (!ended || policy === "" || policy === "Always" || record.stoppingSince !== undefined) return undefined;
  // No container of such a pod has run, and a replacement would fail in the same way.
  return status?.reason === "InvalidSpec" ? undefined : since(observedAtMs) + ENDED_POD_STAYS_MS;
}

/** The values of POD_PHASE_SUCCEEDED and POD_PHASE_FAILED. */
const SUCCEEDED_PHASE = 3;
const FAILED_PHASE = 4;

function nothingLeft(pod: PodEntry, input: WorkloadInput): string | undefined {
  const { node, stoppingSince } = pod.record;
  if (node === "") return stoppingSince === undefined ? undefined : "stopped before it was placed";
  if (!input.nodeExists(node)) return `node ${node} was removed`;
  // The agent link deletes the record itself. This covers a crash before that.
  return pod.status?.phase === REMOVED_PHASE ? "its node has removed it" : undefined;
}

/** The value of POD_PHASE_REMOVED. */
const REMOVED_PHASE = 6;

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
