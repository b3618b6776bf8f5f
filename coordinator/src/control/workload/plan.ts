import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { isReady } from "./readiness.ts";

/** What to do for one workload. The same objects are executed and printed. */
export type WorkloadStep =
  | { readonly type: "create-pods"; readonly count: number; readonly why: string }
  | { readonly type: "stop-pod"; readonly pod: PodEntry; readonly why: string }
  | { readonly type: "relabel-pod"; readonly pod: PodEntry }
  /** Nothing of the pod is or ever was on a node: its record goes. */
  | { readonly type: "forget-pod"; readonly pod: PodEntry; readonly why: string }
  /** The last pod of a deleted resource is gone. */
  | { readonly type: "forget-resource" };

export interface WorkloadInput {
  /** Undefined: the record is gone though pods are left. */
  readonly resource: ResourceEntry | undefined;
  readonly pods: readonly PodEntry[];
  /** Whether a node is there to stop the pod; a node that was forgotten has taken its pods with it. */
  readonly nodeExists: (name: string) => boolean;
  /** Whether what the node last said still holds. */
  readonly nodeReady: (name: string) => boolean;
  /** By the clock that pods' `observedAtMs` are of. */
  readonly nowMs: number;
  /** Which of these pods to stop so that the rest stay spread. */
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
}

/** RollingUpdate's defaults, as Kubernetes rounds them: a quarter more (rounded up), a quarter fewer (rounded down). */
const defaultSurge = 0.25;
const defaultUnavailable = 0.25;

/** Pure: what takes the pods nearer to what the resource wants, without ever having too few or too many. */
export function planWorkload(input: WorkloadInput): WorkloadStep[] {
  const steps: WorkloadStep[] = [];
  const gone = new Set<PodEntry>();
  for (const pod of input.pods) {
    const why = nothingLeft(pod, input);
    if (why === undefined) continue;
    gone.add(pod);
    steps.push({ type: "forget-pod", pod, why });
  }
  const left = input.pods.filter((pod) => !gone.has(pod));
  const active = left.filter((pod) => pod.record.stoppingSince === undefined);
  const { resource } = input;
  if (resource === undefined || resource.record.deleting) {
    for (const pod of active) steps.push({ type: "stop-pod", pod, why: "its workload was deleted" });
    if (resource !== undefined && left.length === 0) steps.push({ type: "forget-resource" });
    return steps;
  }
  const evicted = active.filter(isEvicted);
  for (const pod of evicted) {
    steps.push({ type: "stop-pod", pod, why: `its node has evicted it: ${pod.status?.message}` });
  }
  const over = active.filter(
    (pod) => !evicted.includes(pod) && (replaceAtMs(pod) ?? Infinity) <= input.nowMs,
  );
  for (const pod of over) steps.push({ type: "stop-pod", pod, why: "its containers have ended" });
  const staying = active.filter((pod) => !evicted.includes(pod) && !over.includes(pod));
  if (resource.workload !== undefined) steps.push(...rollForward(resource.workload, staying, input));
  return steps;
}

/** Its node has ended it for good and won't start it again. */
function isEvicted({ status }: PodEntry): boolean {
  return status?.phase === failedPhase && status.reason === "Evicted";
}

/** When the next of the pods is to be replaced because its restart policy lets it end; undefined: none of them. */
export function nextReplacementMs(pods: readonly PodEntry[]): number | undefined {
  const times = pods.flatMap((pod) => replaceAtMs(pod) ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Long enough that programs which end at once don't keep the fleet busy. */
const endedPodStaysMs = 10_000;

/** Restart policies other than Always let pods end. What runs for ever gets new ones in their place. */
function replaceAtMs({ record, status, observedAtMs = 0 }: PodEntry): number | undefined {
  const ended = status?.phase === succeededPhase || status?.phase === failedPhase;
  const policy = record.template?.podConfig?.restartPolicy ?? "";
  if (!ended || policy === "" || policy === "Always" || record.stoppingSince !== undefined) return undefined;
  // Nothing of such a pod has run, and another one would be no better.
  return status?.reason === "InvalidSpec" ? undefined : observedAtMs + endedPodStaysMs;
}

/** POD_PHASE_SUCCEEDED and POD_PHASE_FAILED. */
const succeededPhase = 3;
const failedPhase = 4;

function nothingLeft(pod: PodEntry, input: WorkloadInput): string | undefined {
  const { node, stoppingSince } = pod.record;
  if (node === "") return stoppingSince === undefined ? undefined : "stopped before it was placed";
  if (!input.nodeExists(node)) return `node ${node} was forgotten`;
  // The node's word; the link deletes the record itself, this covers a crash in between.
  return pod.status?.phase === removedPhase ? "its node has removed it" : undefined;
}

/** POD_PHASE_REMOVED. */
const removedPhase = 6;

function rollForward(
  workload: NonNullable<ResourceEntry["workload"]>,
  active: readonly PodEntry[],
  input: WorkloadInput,
): WorkloadStep[] {
  const { replicas, currentHashes, labels } = workload;
  const current = active.filter((pod) => currentHashes.has(pod.record.templateHash));
  const old = active.filter((pod) => !currentHashes.has(pod.record.templateHash));
  const surplus = new Set(victims(current, Math.max(0, current.length - replicas), input));
  const steps: WorkloadStep[] = [];
  // A pod is written once in a transaction, and one that goes needs no new labels.
  for (const pod of current) {
    if (!surplus.has(pod) && !sameLabels(pod.record.labels, labels)) steps.push({ type: "relabel-pod", pod });
  }
  const surge = old.length === 0 ? 0 : Math.ceil(replicas * defaultSurge);
  const count = Math.min(replicas - current.length, replicas + surge - active.length);
  if (count > 0)
    steps.push({ type: "create-pods", count, why: old.length > 0 ? "new revision" : "too few replicas" });
  for (const pod of surplus) steps.push({ type: "stop-pod", pod, why: "too many replicas" });
  steps.push(...retireOld(replicas, current, old, input));
  return steps;
}

/** Old pods that don't serve go at once; those that do, only as far as enough others serve. */
function retireOld(
  replicas: number,
  current: readonly PodEntry[],
  old: readonly PodEntry[],
  input: WorkloadInput,
): WorkloadStep[] {
  const serving = (pod: PodEntry): boolean => isReady(pod, input.nodeReady);
  const idle = old.filter((pod) => !serving(pod));
  const busy = old.filter(serving);
  const needed = replicas - Math.floor(replicas * defaultUnavailable);
  const spare = Math.max(0, Math.min(busy.length, current.filter(serving).length + busy.length - needed));
  const why = "an older revision";
  return [...idle, ...input.pickVictims(busy, spare)].map((pod) => ({ type: "stop-pod", pod, why }));
}

/** Pods that are of least use first: not placed, then not ready, then those whose going keeps the rest spread. */
function victims(pods: readonly PodEntry[], count: number, input: WorkloadInput): PodEntry[] {
  const unplaced = pods.filter((pod) => pod.record.node === "");
  const placed = pods.filter((pod) => pod.record.node !== "");
  const unready = placed.filter((pod) => !isReady(pod, input.nodeReady));
  const ready = placed.filter((pod) => isReady(pod, input.nodeReady));
  const first = [...unplaced, ...unready].slice(0, count);
  return [...first, ...input.pickVictims(ready, count - first.length)];
}

function sameLabels(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
