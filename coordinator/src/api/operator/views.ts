import type {
  Node,
  Pod,
  Resource,
  Endpoint as WireEndpoint,
} from "@forage/proto/forage/operator/v1/operator";
import { formatBytes, formatMilliCpu, podRequests } from "@forage/scheduler";
import type { UnplacedPod } from "../../control/placement/unplaced.ts";
import { isReady } from "../../control/workload/readiness.ts";
import { endpointsOf, findService, protocolOf, readyEndpointCount } from "../../destination/endpoints.ts";
import { nodeProblems } from "../../model/node-conditions.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { NodeEntry, PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";

export function resourceView(state: State, entry: ResourceEntry): Resource {
  const { record, workload } = entry;
  const { namespace, kind, name } = record;
  const pods = state
    .podsOfWorkload(workloadKey(namespace, kind, name))
    .filter((p) => p.record.stoppingSince === undefined);
  const updated = pods.filter((pod) => workload?.currentHashes.has(pod.record.templateHash));
  return {
    namespace,
    kind,
    name,
    labels: record.labels,
    spec: record.resource,
    generation: record.generation,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    deleting: record.deleting,
    autoscaling: undefined,
    replicas: workload?.replicas ?? 0,
    updatedReplicas: updated.length,
    readyReplicas: pods.filter((pod) => isReady(pod, nodeReady(state))).length,
    readyEndpoints: kind === "service" ? readyEndpointCount(state, namespace, name) : 0,
    rolloutId: record.rolloutId,
    message: "",
    job: undefined,
    cronJob: undefined,
    owner: record.owner === undefined ? "" : `${record.owner.kind}/${record.owner.name}`,
  };
}

export function podView(state: State, { record, status }: PodEntry, unplaced: UnplacedPod | undefined): Pod {
  return {
    uid: record.uid,
    namespace: record.namespace,
    name: record.name,
    workloadKind: record.workloadKind,
    workloadName: record.workloadName,
    labels: record.labels,
    node: record.node,
    createdAt: record.createdAt,
    stopping: record.stoppingSince !== undefined,
    stopReason: record.stopReason,
    status,
    templateHash: record.templateHash,
    unschedulable: unplaced?.summary ?? "",
    draining: record.drainCause,
    nodeLost: record.node !== "" && !nodeReady(state)(record.node),
  };
}

export function nodeView(state: State, node: NodeEntry): Node {
  const { record, report, health } = node;
  const pods = state.podsOnNode(node.name);
  const problems = nodeProblems(report?.report).map(({ message }) => message);
  return {
    name: node.name,
    ready: health.ready && problems.length === 0,
    message: [health.message, ...problems].filter((text) => text !== "").join("; "),
    unschedulable: record.unschedulable,
    labels: { ...report?.report?.labels, ...record.labels },
    report: report?.report,
    joinedAt: record.joinedAt,
    lastSeenAt: health.lastSeenMs === undefined ? undefined : toTimestamp(health.lastSeenMs),
    agentVersion: report?.agentVersion ?? "",
    pods: pods.length,
    requested: requestedOn(pods),
    bootId: report?.bootId ?? "",
    taints: record.taints.map(({ key, value, effect }) => ({ key, value, effect })),
    unreachable: false,
    notReadySince: undefined,
    drain: undefined,
    conditionTaints: [],
  };
}

export function endpointViews(state: State, namespace: string, service: string): WireEndpoint[] {
  const ports = findService(state, namespace, service)?.spec.ports ?? [];
  return ports.flatMap((port) =>
    endpointsOf(state, namespace, service, port.port).map((endpoint) => ({
      namespace,
      service,
      servicePort: port.port,
      portName: port.name,
      protocol: protocolOf(port),
      address: endpoint.address,
      port: endpoint.port,
      pod: endpoint.pod,
      node: endpoint.node,
    })),
  );
}

function nodeReady(state: State): (name: string) => boolean {
  return (name) => state.node(name)?.health.ready ?? false;
}

function requestedOn(pods: readonly PodEntry[]): Record<string, string> {
  const sums = new Map<string, number>();
  for (const pod of pods) {
    for (const [resource, amount] of podRequests(podSpecOf(pod.record))) {
      sums.set(resource, (sums.get(resource) ?? 0) + amount);
    }
  }
  return Object.fromEntries([...sums].map(([resource, amount]) => [resource, quantity(resource, amount)]));
}

function quantity(resource: string, amount: number): string {
  if (resource === "cpu") return formatMilliCpu(amount);
  return resource === "memory" || resource === "ephemeral-storage" ? formatBytes(amount) : String(amount);
}
