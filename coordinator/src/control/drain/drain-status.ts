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

/** Returns the next steps of a drain and the pods that it waits for, in the present view. */
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

/** Reports whether the drain is still to do something. */
export function isUnderWay(drain: DrainRecord | undefined): drain is DrainRecord {
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
  const troubles = replacements.slice(0, MAX_TROUBLES).map((it) => troubleOf(it, unschedulable));
  const words = `${ready} of ${needed} replicas that ${workload.name} can't spare are ready beside it`;
  return [words, ...troubles].join("; ");
}

/** The largest number of failures of replacements in one line. */
const MAX_TROUBLES = 2;

function troubleOf({ record, status }: PodEntry, unschedulable: Pick<UnschedulablePods, "get">): string {
  const waiting = unschedulable.get(record.uid)?.summary;
  if (record.node === "")
    return `${record.name} has no node${waiting === undefined ? " yet" : `: ${waiting}`}`;
  const message = status?.message ?? "";
  return `${record.name} is not ready yet on ${record.node}${message === "" ? "" : `: ${message}`}`;
}

function resourceOf(record: PodEntry["record"]): string {
  return resourceKey(record.namespace, record.workloadKind, record.workloadName);
}
