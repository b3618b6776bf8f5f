import type { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import type { Drain, Node } from "@forage/proto/forage/operator/v1/operator";
import type { DrainRecord, NodeTaint } from "@forage/proto/forage/store/v1/store";
import { formatBytes, formatMilliCpu, podRequests } from "@forage/scheduler";
import { usesNothing } from "../../control/job/pod-state.ts";
import { nodeProblems } from "../../model/node-conditions.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../../state/entries.ts";
import { labelsOf, refusedLabels, refusedLabelsMessage } from "../../state/node-labels.ts";
import { conditionTaints } from "../../state/node-taints.ts";
import { type GatewayStatuses, gatewayView } from "./route-view.ts";
import { nodeUsage } from "./usage-view.ts";

export function nodeView(state: ClusterView, node: NodeEntry, gateways: GatewayStatuses): Node {
  const { record, report, health } = node;
  const pods = state.podsOnNode(node.name);
  const problems = nodeProblems(report?.report).map(({ message }) => message);
  const gateway = gateways.nodeState(node.name);
  const lostMs = health.ready ? undefined : health.sinceMs;
  return {
    name: node.name,
    ready: health.ready && problems.length === 0,
    message: [health.message, ...problems].filter((text) => text !== "").join("; "),
    unschedulable: record.unschedulable,
    labels: labelsOf(node),
    report: report?.report && withRefusedLabels(report.report, node),
    joinedAt: record.joinedAt,
    certificateEnds: record.certificateEnds,
    lastSeenAt: health.lastSeenMs === undefined ? undefined : toTimestamp(health.lastSeenMs),
    agentVersion: report?.agentVersion ?? "",
    pods: pods.length,
    requested: requestedOn(pods),
    bootId: report?.bootId ?? "",
    taints: record.taints.map(taintView),
    unreachable: lostMs !== undefined,
    notReadySince: lostMs === undefined ? record.notReadySince : toTimestamp(lostMs),
    drain: record.drain && drainView(record.drain),
    conditionTaints: conditionTaints(node).map(taintView),
    gateway: gateway && gatewayView(gateway),
    usage: nodeUsage(health),
  };
}

/** Adds a condition to the report if labels of the node are ignored, so that the operator sees which ones to correct. */
function withRefusedLabels(report: NodeReport, node: NodeEntry): NodeReport {
  const refused = refusedLabels(node);
  if (refused.length === 0) return report;
  const message = refusedLabelsMessage(node.name, refused);
  const condition = { type: "LabelsRefused", status: true, reason: "ReservedForOperators", message };
  return { ...report, conditions: [...report.conditions, condition] };
}

export function drainView(record: DrainRecord): Drain {
  const { startedAt, finishedAt, failure, force, includeClaims, uncordonOnReturn } = record;
  const state = failure !== "" ? "failed" : finishedAt === undefined ? "draining" : "drained";
  return { state, startedAt, finishedAt, message: failure, force, includeClaims, uncordonOnReturn };
}

function taintView({ key, value, effect }: NodeTaint) {
  return { key, value, effect };
}

function requestedOn(pods: readonly PodEntry[]): Record<string, string> {
  const sums = new Map<string, number>();
  for (const pod of pods) {
    if (usesNothing(pod)) continue;
    for (const [resource, amount] of requestsOf(pod)) {
      sums.set(resource, (sums.get(resource) ?? 0) + amount);
    }
  }
  return Object.fromEntries([...sums].map(([resource, amount]) => [resource, quantity(resource, amount)]));
}

/**
 * Yields the pod's requests. Yields nothing if they can't be added up: the scheduler reports that, and the node is shown
 * with its other pods.
 */
function requestsOf({ record }: PodEntry): Iterable<readonly [string, number]> {
  try {
    return podRequests(podSpecOf(record));
  } catch {
    return [];
  }
}

function quantity(resource: string, amount: number): string {
  if (resource === "cpu") return formatMilliCpu(amount);
  return resource === "memory" || resource === "ephemeral-storage" ? formatBytes(amount) : String(amount);
}
