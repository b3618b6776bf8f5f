import { isIPv6 } from "node:net";
import type { ServiceEndpoint, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { addressesOfNode, addressesOfPod, addressOfNode } from "../endpoints/change-keys.ts";
import { findService, protocolOf, type ServiceEntry, targetPortOf } from "../endpoints/endpoints.ts";
import { isReady } from "../endpoints/readiness.ts";
import { serviceAddressKey } from "../model/keys.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";
import { isLocalOnly } from "../state/node-labels.ts";
import { serves } from "../state/serves.ts";

/**
 * The annotation for services with session affinity: the number of seconds for which a client stays
 * with its pod.
 */
export const AFFINITY_ANNOTATION = "forage.dev/session-affinity-seconds";
/**
 * The annotation for services of type LoadBalancer: the requested addresses, at most one of each
 * family, separated by commas.
 */
export const LOAD_BALANCER_IP_ANNOTATION = "forage.dev/load-balancer-ip";
/** The default of Kubernetes: three hours. */
const DEFAULT_AFFINITY_SECONDS = 10_800;

/** Returns the state of a service for agents; undefined if the service does not exist. */
export function serviceStateOf(
  state: ClusterView,
  namespace: string,
  name: string,
): ServiceState | undefined {
  const entry = findService(state, namespace, name);
  if (entry === undefined) return undefined;
  const { spec } = entry;
  const address = state.serviceAddresses.get(serviceAddressKey(namespace, name))?.record;
  const given = address?.releasedAt === undefined ? address : undefined;
  return {
    namespace,
    name,
    type: typeOf(entry),
    virtualIps: given?.virtualIps ?? [],
    ports: spec.ports.map((port) => ({
      name: port.name,
      port: port.port,
      protocol: protocolOf(port),
      targetPort: targetPortOf([port], port.port),
      nodePort:
        given?.nodePorts.find((it) => it.port === port.port && it.protocol === protocolOf(port))?.nodePort ??
        0,
    })),
    endpoints: endpointsBehind(state, entry),
    affinitySeconds: affinitySecondsOf(entry),
    loadBalancerIps: given?.loadBalancerIps ?? [],
    announcedBy: given?.announcedBy ?? "",
    announcedAlone: given?.announcedAlone ?? false,
  };
}

export function typeOf({ spec }: Pick<ServiceEntry, "spec">): string {
  return spec.type === "" ? "ClusterIP" : spec.type;
}

function affinitySecondsOf({ spec }: ServiceEntry): number {
  if (spec.sessionAffinity !== "ClientIP") return 0;
  const given = spec.annotations[AFFINITY_ANNOTATION];
  return given === undefined ? DEFAULT_AFFINITY_SECONDS : Number(given);
}

/**
 * Returns the ready pods that serve at least one of the ports, sorted by name. For a headless
 * service without ports, returns all ready pods.
 */
function endpointsBehind(state: ClusterView, { spec, record }: ServiceEntry): ServiceEndpoint[] {
  const pods = state.podsOfWorkload(workloadKey(record.namespace, "container_service", spec.target));
  const nodeReady = (node: string): boolean => serves(state.node(node));
  return pods
    .filter((pod) => isReady(pod, nodeReady))
    .flatMap((pod) => endpointOf(pod, state.node(pod.record.node), spec.ports) ?? [])
    .sort((a, b) => (a.pod < b.pod ? -1 : 1));
}

function endpointOf(
  { record, status }: PodEntry,
  node: NodeEntry | undefined,
  ports: readonly ServicePort[],
): ServiceEndpoint | undefined {
  const hostIp = addressOfNode(node);
  const hostPorts = ports.map((port) => {
    const target = targetPortOf([port], port.port);
    const protocol = protocolOf(port);
    const mapping = status?.hostPorts.find((m) => m.containerPort === target && m.protocol === protocol);
    return mapping?.hostPort ?? 0;
  });
  if (node === undefined || hostIp === "" || (ports.length > 0 && hostPorts.every((port) => port === 0)))
    return undefined;
  const podIpv6 = status === undefined ? "" : ipv6Of(addressesOfPod({ status }));
  return {
    pod: record.name,
    node: node.name,
    podIp: status?.podIp ?? "",
    podIpv6,
    // A pod without an IPv6 address can't be reached by its host's address either.
    hostIpv6: podIpv6 === "" ? "" : ipv6Of(addressesOfNode(node)),
    hostIp,
    local: isLocalOnly(node),
    hostPorts,
    hostNetwork: record.template?.podConfig?.hostNetwork ?? false,
  };
}

function ipv6Of(addresses: readonly string[]): string {
  return addresses.find((it) => isIPv6(it)) ?? "";
}
