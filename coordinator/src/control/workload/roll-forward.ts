import { isReady } from "../../endpoints/readiness.ts";
import { sameLabels } from "../../model/labels.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import { isAvailable } from "./availability.ts";
import type { Hold } from "./hold.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import { hasImage } from "./prefetch-status.ts";
import { updateLimits } from "./update-limits.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

export interface RollForwardInput {
  /** The effective workload. */
  readonly workload: Workload;
  /** The last good workload, from which pods are created while the rollout is paused. */
  readonly before: Workload | undefined;
  /** Pods that are not stopping and that this evaluation doesn't stop. */
  readonly staying: readonly PodEntry[];
  readonly stopping: readonly PodEntry[];
  /** Returns the pods of `staying` that have the workload's revision. */
  readonly current: () => readonly PodEntry[];
  readonly hold: Hold;
  readonly stableMs: number;
  /** Returns the progress of image pulls on nodes whose pods are replaced. */
  readonly ahead: () => ReadonlyMap<string, ImagesOnNode>;
}

/** The pods of a rollout, by what happens to them. */
interface Sides {
  readonly current: readonly PodEntry[];
  readonly old: readonly PodEntry[];
  /** The stopping pods of older revisions on reachable nodes. */
  readonly leaving: readonly PodEntry[];
}

/**
 * Returns the next steps from older revisions to the effective one. They keep the numbers of existing and ready pods within
 * the update limits. Pure.
 */
export function rollForward(roll: RollForwardInput, input: WorkloadInput): WorkloadStep[] {
  const { workload } = roll;
  const isCurrent = (pod: PodEntry): boolean => workload.currentHashes.has(pod.record.templateHash);
  const sides: Sides = {
    current: roll.current(),
    old: roll.staying.filter((pod) => !isCurrent(pod)),
    leaving: roll.stopping.filter((pod) => !isCurrent(pod) && input.nodeReady(pod.record.node)),
  };
  const limits = updateLimits(workload.strategy, workload.replicas);
  if (limits.type === "Recreate" && roll.hold.type === "none") return recreate(roll, sides, input);
  const { surge, unavailable } = limits.type === "Recreate" ? { surge: 0, unavailable: 0 } : limits;
  return rolling(roll, sides, { surge, unavailable }, input);
}

/** Stops all pods of older revisions before the first new pod is created. */
function recreate(
  roll: RollForwardInput,
  { current, old, leaving }: Sides,
  input: WorkloadInput,
): WorkloadStep[] {
  const { workload } = roll;
  const steps = keepCurrent(roll, current, input);
  if (old.length > 0 || leaving.length > 0) {
    const begun = leaving.length > 0 || current.length > 0;
    // Ready pods stay until the images are present, so that only the replacement itself takes time.
    if (!begun && ![...roll.ahead().values()].every(hasImage)) return steps;
    const why = "an older revision, and Recreate stops all of it first";
    return [...steps, ...old.map((pod): WorkloadStep => ({ type: "stop-pod", pod, why }))];
  }
  const why = current.length === 0 ? "new revision" : "too few replicas";
  return [...create(workload.replicas - current.length, why, workload), ...steps];
}

function rolling(
  roll: RollForwardInput,
  { current, old, leaving }: Sides,
  { surge, unavailable }: { readonly surge: number; readonly unavailable: number },
  input: WorkloadInput,
): WorkloadStep[] {
  const { workload, before, staying, hold } = roll;
  const { replicas } = workload;
  const newTarget = newPods(roll, current.length, old.length);
  const oldTarget = replicas - newTarget;
  const changing = old.length > 0 || leaving.length > 0;
  // Without surge, stopping pods count as well, because they may hold a port or a device.
  const taken = staying.length + (surge === 0 ? leaving.length : 0);
  const room = Math.max(0, replicas + (changing ? surge : 0) - taken);
  const fresh = Math.max(0, Math.min(newTarget - current.length, room));
  const again = Math.max(
    0,
    Math.min(oldTarget - old.length, replicas - staying.length - fresh, room - fresh),
  );
  const steps: WorkloadStep[] = [...create(fresh, changing ? "new revision" : "too few replicas", workload)];
  if (before !== undefined)
    steps.push(...create(again, "too few replicas while the rollout is paused", before));
  if (hold.type === "paused" || hold.type === "held") {
    // The least useful pods of either revision are stopped first, so that ready pods stay.
    const surplus = staying.length - replicas - (old.length > 0 ? surge : 0);
    return [...steps, ...relabel(roll, current, victims(staying, surplus, input))];
  }
  return [
    ...steps,
    ...keepCurrent(roll, current, input),
    ...retireOld(roll, { current, old, leaving }, { unavailable, oldTarget }, input),
  ];
}

/** Returns the desired number of pods of the effective revision at this point of the rollout. */
function newPods({ workload, before, hold }: RollForwardInput, current: number, old: number): number {
  const { replicas } = workload;
  if (hold.type === "held") return Math.min(replicas, current);
  // Without a good revision and old pods, the rest of the pods could have no other revision.
  if (hold.type === "none" || (before === undefined && old === 0)) return replicas;
  if (hold.type === "canary") return Math.min(replicas, Math.max(hold.pods, current));
  return Math.min(replicas, old === 0 && current >= replicas ? replicas : current);
}

function create(count: number, why: string, of: Workload): WorkloadStep[] {
  return count > 0 ? [{ type: "create-pods", count, why, of }] : [];
}

function stop(pod: PodEntry, why: string): WorkloadStep {
  return { type: "stop-pod", pod, why };
}

/** Updates labels in place, and stops surplus pods. */
function keepCurrent(
  roll: RollForwardInput,
  current: readonly PodEntry[],
  input: WorkloadInput,
): WorkloadStep[] {
  return relabel(roll, current, victims(current, current.length - roll.workload.replicas, input));
}

/** Stops the surplus pods and updates the labels of the others, so that no pod is written twice in a transaction. */
function relabel(
  { workload }: RollForwardInput,
  current: readonly PodEntry[],
  surplus: readonly PodEntry[],
): WorkloadStep[] {
  const going = new Set(surplus);
  const outdated = current.filter(
    (pod) => !going.has(pod) && !sameLabels(pod.record.labels, workload.labels),
  );
  return [
    ...outdated.map((pod): WorkloadStep => ({ type: "relabel-pod", pod })),
    ...surplus.map((pod) => stop(pod, "too many replicas")),
  ];
}

/**
 * Stops old pods. Unready pods stop at once. Ready pods stop as far as enough others are available: first pods on
 * unreachable nodes, then pods of revisions between the good and the effective one. If the update reduces the number of
 * ready pods, only pods on nodes with the new images stop.
 */
function retireOld(
  roll: RollForwardInput,
  { current, old }: Sides,
  { unavailable, oldTarget }: { readonly unavailable: number; readonly oldTarget: number },
  input: WorkloadInput,
): WorkloadStep[] {
  const { workload, before, stableMs } = roll;
  if (old.length === 0) return [];
  const [idle, busy, away]: [PodEntry[], PodEntry[], PodEntry[]] = [[], [], []];
  for (const pod of old) {
    if (pod.status?.ready !== true) idle.push(pod);
    else if (isReady(pod, input.nodeReady)) busy.push(pod);
    else away.push(pod);
  }
  const available = current.filter((pod) => isAvailable(pod, stableMs, input)).length + busy.length;
  const spare = available - (workload.replicas - unavailable);
  const most = Math.max(0, Math.min(busy.length, spare));
  const { pods, count } = mayGo(busy, most, available - workload.replicas, roll.ahead());
  const going = [...idle, ...(spare >= 0 ? away : []), ...servingVictims(pods, count, before, input)];
  return going.slice(0, Math.max(0, old.length - oldTarget)).map((pod) => stop(pod, "an older revision"));
}

/** Selects ready pods to stop, pods of revisions between the good and the effective one first. */
function servingVictims(
  pods: readonly PodEntry[],
  count: number,
  before: Workload | undefined,
  input: WorkloadInput,
): PodEntry[] {
  if (count === 0) return [];
  const isBase = (pod: PodEntry): boolean => before?.currentHashes.has(pod.record.templateHash) ?? false;
  const between = pods.filter((pod) => !isBase(pod));
  const base = pods.filter(isBase);
  const first = input.pickVictims(between, Math.min(count, between.length));
  return [...first, ...input.pickVictims(base, count - first.length)];
}

/** Returns the ready pods that may stop. Surplus pods may stop even if their node lacks the image. */
function mayGo(
  busy: readonly PodEntry[],
  most: number,
  surplus: number,
  ahead: ReadonlyMap<string, ImagesOnNode>,
): { readonly pods: readonly PodEntry[]; readonly count: number } {
  const there = ahead.size === 0 ? busy : busy.filter((pod) => hasImage(ahead.get(pod.record.node)));
  const spare = Math.min(most, Math.max(0, surplus));
  return there.length >= spare
    ? { pods: there, count: Math.min(most, there.length) }
    : { pods: busy, count: spare };
}

/**
 * Selects the least useful pods: unplaced ones first, then unready ones, then those without which the rest is spread best.
 */
function victims(pods: readonly PodEntry[], count: number, input: WorkloadInput): PodEntry[] {
  if (count <= 0) return [];
  const unschedulable = pods.filter((pod) => pod.record.node === "");
  const placed = pods.filter((pod) => pod.record.node !== "");
  const unready = placed.filter((pod) => !isReady(pod, input.nodeReady));
  const ready = placed.filter((pod) => isReady(pod, input.nodeReady));
  const first = [...unschedulable, ...unready].slice(0, count);
  return [...first, ...input.pickVictims(ready, count - first.length)];
}
