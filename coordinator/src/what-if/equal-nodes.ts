import { usesNothing } from "../control/job/pod-state.ts";
import { nodeProblems } from "../model/node-conditions.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";
import { HOSTNAME_LABEL, labelsOf } from "../state/node-labels.ts";
import type { PodShapes } from "./pod-shapes.ts";

/**
 * Groups nodes whose losses have the same effect. Such nodes have equal capacity, labels and
 * taints, run the same pods of the same workloads in the same states, and no pod selects them by
 * name. A node with a problem, with a running pod of a job or with a pod with claims is in its own
 * group.
 */
export function equalNodes(state: ClusterView, shapes: PodShapes): NodeEntry[][] {
  const named = new Set<string>();
  for (const pod of state.pods()) for (const name of shapes.of(pod).namedNodes) named.add(name);
  const groups = new Map<string, NodeEntry[]>();
  for (const node of state.nodes()) {
    if (!node.health.ready) continue;
    const pods = state.podsOnNode(node.name);
    const hasProblems = nodeProblems(node.report?.report).length > 0;
    const isParticular = hasProblems || named.has(node.name) || pods.some(isParticularPod);
    const key = isParticular ? `only ${node.name}` : signatureOf(node, pods);
    groups.set(key, [...(groups.get(key) ?? []), node]);
  }
  return [...groups.values()];
}

function isParticularPod(pod: PodEntry): boolean {
  return (pod.record.job !== undefined && !usesNothing(pod)) || pod.refs.some(({ kind }) => kind === "claim");
}

function signatureOf(node: NodeEntry, pods: readonly PodEntry[]): string {
  const { record, report } = node;
  const labels = Object.entries(labelsOf(node)).filter(
    ([key]) => key !== HOSTNAME_LABEL && key !== "hostname",
  );
  const taints = record.taints.map(({ key, value, effect }) => [key, value, effect]);
  const amounts = Object.entries(report?.report?.allocatable ?? {}).sort(byText);
  return JSON.stringify([
    labels.sort(byText),
    taints,
    record.unschedulable,
    record.drain !== undefined,
    amounts,
    report?.report?.runtimeClasses,
    pods.map(stateOf).sort(),
  ]);
}

function stateOf({ workloadKey, record, status }: PodEntry): string {
  const { templateHash, priority, neverPreempts, stoppingSince, drainingSince, labels } = record;
  const phase = `${status?.phase} ${status?.ready}`;
  const leaving = `${stoppingSince !== undefined} ${drainingSince !== undefined}`;
  const sorted = JSON.stringify(Object.entries(labels).sort(byText));
  return `${workloadKey} ${templateHash} ${priority} ${neverPreempts} ${leaving} ${phase} ${sorted}`;
}

function byText(a: readonly [string, string], b: readonly [string, string]): number {
  return a[0] < b[0] ? -1 : 1;
}
