import type { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { isReady } from "../../endpoints/readiness.ts";
import { resourceKey } from "../../model/keys.ts";
import type { Workload } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../../state/entries.ts";
import type { UnschedulablePods } from "../placement/unschedulable-pods.ts";
import { budgetOf } from "../workload/budget.ts";
import { isDraining } from "../workload/retire.ts";
import { type DrainPlan, planDrain } from "./drain-plan.ts";

export interface DrainStatus {
  readonly state: ClusterView;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
}

/** Returns the plan of a drain for the current view, with the pods that it waits for. */
export function drainStatus({ name, health }: NodeEntry, drain: DrainRecord, view: DrainStatus): DrainPlan {
  const { state } = view;
  return planDrain({
    drain,
    nodeReady: health.ready,
    pods: state.podsOnNode(name),
    workload: ({ record }) => state.resource(resourceOf(record))?.workload,
    moving: (workload) => state.drainingPods(workload).length,
    waitsFor: (pod, workload) => whyWaiting(pod, workload, view),
  });
}

/** Reports whether the drain is in progress. */
export function isDrainActive(drain: DrainRecord | undefined): drain is DrainRecord {
  return drain !== undefined && drain.finishedAt === undefined && drain.failure === "";
}

function whyWaiting(pod: PodEntry, workload: Workload, { state, unschedulable }: DrainStatus): string {
  const others = state
    .podsOfWorkload(pod.workloadKey)
    .filter((it) => it !== pod && it.record.stoppingSince === undefined);
  const nodeReady = (node: string): boolean => state.node(node)?.health.ready ?? false;
  const ready = others.filter((it) => isReady(it, nodeReady)).length;
  const { needed } = budgetOf(workload);
  const replacements = others.filter((it) => !isDraining(it) && !isReady(it, nodeReady));
  const problems = replacements.slice(0, MAX_PROBLEMS).map((it) => problemOf(it, unschedulable));
  const words = `${ready} of ${needed} other replicas that ${workload.name} needs are ready`;
  return [words, ...problems].join("; ");
}

/** The largest number of problems of replacements in one message. */
const MAX_PROBLEMS = 2;

function problemOf({ record, status }: PodEntry, unschedulable: Pick<UnschedulablePods, "get">): string {
  const waiting = unschedulable.get(record.uid)?.summary;
  if (record.node === "")
    return `${record.name} is not placed${waiting === undefined ? " yet" : `: ${waiting}`}`;
  const message = status?.message ?? "";
  return `${record.name} is not ready yet on ${record.node}${message === "" ? "" : `: ${message}`}`;
}

function resourceOf(record: PodEntry["record"]): string {
  return resourceKey(record.namespace, record.workloadKind, record.workloadName);
}
