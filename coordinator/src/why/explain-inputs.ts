import { AttemptState } from "@forage/proto/forage/store/v1/store";
import type { Explanation } from "@forage/scheduler";
import { cronInput } from "../control/cron/cron-input.ts";
import { type CronRun, isActive } from "../control/cron/plan.ts";
import { waitsFor } from "../control/depends/waits-for.ts";
import { drainStatus, isDrainActive } from "../control/drain/drain-status.ts";
import type { UnschedulablePod } from "../control/placement/unschedulable-pods.ts";
import type { RolloutView } from "../control/workload/rollout-view.ts";
import { isReady } from "../endpoints/readiness.ts";
import { hasDependencies } from "../model/depends-on.ts";
import { scaleKey, workloadStatusKey } from "../model/keys.ts";
import { toEpochMs } from "../model/timestamp.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, PodEntry, ResourceEntry } from "../state/entries.ts";
import { keptPods } from "../state/kept-pods.ts";
import type { CronJobInput } from "./cron-job.ts";
import type { NodeInput } from "./node.ts";
import { type PodInput, podCauses } from "./pod.ts";
import type { PodCauses, RolloutFacts, WorkloadInput } from "./workload.ts";

export interface ExplainOptions {
  readonly state: ClusterView;
  readonly unschedulable: { get(uid: string): UnschedulablePod | undefined };
  /**
   * Returns each node with the reason that excludes it; undefined if the pod does not wait for a
   * node.
   */
  readonly explainPlacement: (pod: PodEntry) => Explanation | undefined;
  readonly rolloutView: (workloadKey: string) => RolloutView | undefined;
  readonly nowMs: number;
}

export function podInput(
  pod: PodEntry,
  { state, unschedulable, explainPlacement, nowMs }: ExplainOptions,
): PodInput {
  const why = pod.record.node === "" ? unschedulable.get(pod.record.uid)?.summary : undefined;
  const explanation = why === undefined ? undefined : explainPlacement(pod);
  return {
    pod,
    node: state.node(pod.record.node),
    unschedulable: why,
    rejections: explanation?.rejections.map(({ node, message }) => `${node}: ${message}`) ?? [],
    nearest: explanation?.nearest ?? "",
    nowMs,
  };
}

/** Returns the inputs about a cron job; undefined for other resources. */
export function cronJobInput(
  { record }: ResourceEntry,
  { state, nowMs }: ExplainOptions,
): CronJobInput | undefined {
  const { namespace, kind, name, deleting } = record;
  const { cron, runs, schedule } = cronInput(workloadKey(namespace, kind, name), nowMs, state);
  if (cron === undefined) return undefined;
  const finishedMs = (run: CronRun): number => toEpochMs(run.status?.finishedAt) ?? 0;
  const ended = runs
    .filter(({ status }) => (status?.condition ?? "") !== "")
    .sort((a, b) => finishedMs(b) - finishedMs(a));
  return {
    namespace,
    name,
    deleting,
    suspended: cron.suspended,
    nextMs: schedule?.next(nowMs),
    active: runs.filter(isActive).map(({ entry }) => entry.record.name),
    ended: ended.map(({ entry, status }) => ({
      name: entry.record.name,
      failed: status?.condition === "Failed",
      message: status?.message ?? "",
    })),
  };
}

export function workloadInput({ record, workload }: ResourceEntry, options: ExplainOptions): WorkloadInput {
  const { state } = options;
  const { namespace, kind, name } = record;
  const key = workloadKey(namespace, kind, name);
  const stored = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record;
  const status = stored?.status;
  const spec = record.resource?.spec;
  const autoscaled = spec?.$case === "containerService" && spec.value.scaling?.autoscaling !== undefined;
  const scale = autoscaled ? state.scales.get(scaleKey(namespace, name))?.record : undefined;
  const entry = { record, workload } as ResourceEntry;
  return {
    namespace,
    kind,
    name,
    deleting: record.deleting,
    replicas: record.deleting ? undefined : workload?.replicas,
    pods: state.podsOfWorkload(key).map((pod) => causesOf(pod, options)),
    waitsFor: hasDependencies(record, stored) ? waitsFor(entry, state) : [],
    rollout: rolloutFacts(options.rolloutView(key), keptPodNames(key, options)),
    scaled:
      scale === undefined || scale.reason === "" ? undefined : `${scale.replicas} replicas: ${scale.reason}`,
    job: status?.$case === "job" ? status.value : undefined,
  };
}

export function nodeInput(node: NodeEntry, options: ExplainOptions): NodeInput {
  const { state, nowMs } = options;
  const { drain } = node.record;
  const waits = isDrainActive(drain)
    ? drainStatus(node, drain, options).waiting.map(
        ({ pod, why }) => `${pod.record.namespace}/${pod.record.name}: ${why}`,
      )
    : undefined;
  return { node, pods: state.podsOnNode(node.name).length, drainWaits: waits, nowMs };
}

/**
 * Returns the causes of a pod. An ended pod of a job has none, because the job explains its result.
 */
function causesOf(pod: PodEntry, options: ExplainOptions): PodCauses {
  const ready = isReady(pod, (node) => options.state.node(node)?.health.ready ?? false);
  const counted = (pod.record.job?.counted ?? "") !== "";
  return { pod, ready, causes: counted ? [] : podCauses(podInput(pod, options)) };
}

const STATES: Partial<Record<AttemptState, string>> = {
  [AttemptState.PROGRESSING]: "progressing",
  [AttemptState.SUCCEEDED]: "succeeded",
  [AttemptState.ROLLING_BACK]: "rolling back",
  [AttemptState.ROLLED_BACK]: "rolled back",
  [AttemptState.FAILED]: "failed",
};

function keptPodNames(workload: string, { state, nowMs }: ExplainOptions): string[] {
  const [namespace = ""] = workload.split("/");
  return keptPods(state, namespace, nowMs)
    .filter(({ entry }) => entry.workloadKey === workload)
    .map(({ entry }) => entry.record.name);
}

function rolloutFacts(view: RolloutView | undefined, keptPods: readonly string[]): RolloutFacts | undefined {
  if (view === undefined) return undefined;
  const { attempt, hold, waitsForPromotion, prefetchStatus } = view;
  return {
    state: (attempt && STATES[attempt.state]) ?? "",
    message: attempt?.message ?? "",
    paused: hold.type === "paused",
    canary: hold.type === "canary",
    waitsForPromotion,
    prefetchStatus,
    rolledBackTo: attempt?.rolledBackTo ?? 0,
    keptPods,
  };
}
