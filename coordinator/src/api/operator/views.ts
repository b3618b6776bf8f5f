import type { Pod, Resource, Endpoint as WireEndpoint } from "@forage/proto/forage/operator/v1/operator";
import type { UnschedulablePod } from "../../control/placement/unschedulable-pods.ts";
import { serviceFailure } from "../../destination/service-failure.ts";
import { endpointsOf, findService, protocolOf, readyEndpointCount } from "../../endpoints/endpoints.ts";
import { isReady } from "../../endpoints/readiness.ts";
import { serviceAddressKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { KeptPod } from "../../state/kept-pods.ts";
import { cronView } from "./cron-view.ts";
import { jobView } from "./job-view.ts";
import { rolloutMessage } from "./rollout-message.ts";

export function resourceView(state: ClusterView, entry: ResourceEntry, nowMs: number): Resource {
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
    replicas: workload?.replicas ?? 0,
    updatedReplicas: updated.length,
    readyReplicas: pods.filter((pod) => isReady(pod, nodeReady(state))).length,
    readyEndpoints: kind === "service" ? readyEndpointCount(state, namespace, name) : 0,
    rolloutId: record.rolloutId,
    autoscaling: undefined,
    message: kind === "service" ? serviceMessage(state, entry) : rolloutMessage(state, entry),
    job: jobView(state, entry, nowMs),
    cronJob: cronView(state, entry, nowMs),
    ...addressesOf(state, entry),
    route: undefined,
    owner: record.owner === undefined ? "" : `${record.owner.kind}/${record.owner.name}`,
  };
}

/** Returns the reason why a service can't have endpoints. Empty: it can. */
function serviceMessage(state: ClusterView, entry: ResourceEntry): string {
  const failure = serviceFailure(state, entry.record.namespace, entry.record.name);
  const about = failure === undefined ? "" : `${failure.reason}: ${failure.message}`;
  return [addressMessage(state, entry), about].filter((text) => text !== "").join("; ");
}

/** Returns the reason why a load balancer is unreachable. The cause is in its last event. */
function addressMessage(state: ClusterView, entry: ResourceEntry): string {
  const spec = entry.record.resource?.spec;
  if (spec?.$case !== "service" || spec.value.type !== "LoadBalancer" || entry.record.deleting) return "";
  const { loadBalancerIps, announcedBy } = addressesOf(state, entry);
  if (loadBalancerIps.length === 0) return "it has no address for its load balancer: see its events";
  return announcedBy === "" ? `no node announces ${loadBalancerIps.join(", ")}: see its events` : "";
}

type ServiceAddresses = Pick<Resource, "virtualIps" | "nodePorts" | "loadBalancerIps" | "announcedBy">;

function addressesOf(state: ClusterView, { record }: ResourceEntry): ServiceAddresses {
  const { namespace, kind, name } = record;
  const address =
    kind === "service" ? state.serviceAddresses.get(serviceAddressKey(namespace, name)) : undefined;
  if (address === undefined || address.record.releasedAt !== undefined)
    return { virtualIps: [], nodePorts: [], loadBalancerIps: [], announcedBy: "" };
  const { virtualIps, nodePorts, loadBalancerIps, announcedBy } = address.record;
  return { virtualIps, nodePorts, loadBalancerIps, announcedBy };
}

export function podView(
  state: ClusterView,
  { record, status }: PodEntry,
  unschedulable: UnschedulablePod | undefined,
): Pod {
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
    unschedulable: unschedulable?.summary ?? "",
    draining: record.drainCause,
    nodeLost: record.node !== "" && !nodeReady(state)(record.node),
    template: undefined,
    keptUntil: undefined,
    usage: undefined,
  };
}

/** Returns the view of a kept failed pod. */
export function keptPodView(state: ClusterView, { entry, untilMs }: KeptPod): Pod {
  const view = podView(state, entry, undefined);
  return { ...view, stopping: false, draining: "", nodeLost: false, keptUntil: toTimestamp(untilMs) };
}

export function endpointViews(state: ClusterView, namespace: string, service: string): WireEndpoint[] {
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

function nodeReady(state: ClusterView): (name: string) => boolean {
  return (name) => state.node(name)?.health.ready ?? false;
}
