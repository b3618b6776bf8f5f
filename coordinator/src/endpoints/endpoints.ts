import type { ServicePort, ServiceSpec } from "@forage/proto/forest/v1/forage";
import { resourceKey } from "../model/keys.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry, ResourceEntry } from "../state/entries.ts";
import { isLocalOnly } from "../state/node-labels.ts";
import { serves } from "../state/serves.ts";
import { addressOfNode, zoneOfNode } from "./change-keys.ts";
import { opaqueByPod } from "./pod-opaque.ts";
import { isReady } from "./readiness.ts";

/** The address of one ready pod for one port of a service: an address and a port of the host. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
  readonly pod: string;
  readonly node: string;
  readonly zone: string;
  readonly workload: string;
  readonly protocol: string;
  /** Whether the pod declares the port as opaque. Undefined: the pod has no such annotation. */
  readonly opaque: boolean | undefined;
  /** Whether only clients on the same node can reach the endpoint. */
  readonly localOnly: boolean;
}

export type ServiceEntry = ResourceEntry & { readonly spec: ServiceSpec };

/** Returns the service's resource. Undefined if there is none, or if it is being deleted. */
export function findService(state: ClusterView, namespace: string, name: string): ServiceEntry | undefined {
  const entry = state.resource(resourceKey(namespace, "service", name));
  const spec = entry?.record.resource?.spec;
  if (entry === undefined || entry.record.deleting || spec?.$case !== "service") return undefined;
  return { ...entry, spec: spec.value };
}

/** Returns the service's port with this number. Prefers TCP if there are several. */
export function listedPort(ports: readonly ServicePort[], port: number): ServicePort | undefined {
  const listed = ports.filter((p) => p.port === port);
  return listed.find((p) => protocolOf(p) === "TCP") ?? listed[0];
}

/** Returns the container port of a service's port. A port that the service doesn't list is used as the container port. */
export function targetPortOf(ports: readonly ServicePort[], port: number): number {
  const listed = listedPort(ports, port);
  if (listed === undefined) return port;
  return listed.targetPort === 0 ? listed.port : listed.targetPort;
}

/** Returns the ready endpoints of one port, in a stable order. */
export function endpointsOf(
  state: ClusterView,
  namespace: string,
  service: string,
  port: number,
): Endpoint[] {
  const entry = findService(state, namespace, service);
  if (entry === undefined) return [];
  const targetPort = targetPortOf(entry.spec.ports, port);
  const protocol = protocolOf(listedPort(entry.spec.ports, port));
  const found: Endpoint[] = [];
  for (const pod of state.podsOfWorkload(workloadKey(namespace, "container_service", entry.spec.target))) {
    const endpoint = endpointOf(state, pod, targetPort, protocol);
    if (endpoint !== undefined) found.push(endpoint);
  }
  return found.sort((a, b) => (a.pod < b.pod ? -1 : 1));
}

/** Returns the services that select this port of the pod, by name, each with its own port. */
export function servicesBefore(
  state: ClusterView,
  { record }: PodEntry,
  containerPort: number,
): { readonly entry: ServiceEntry; readonly port: ServicePort }[] {
  const found = state.resources(record.namespace).flatMap(({ record: { kind, name } }) => {
    const entry = kind === "service" ? findService(state, record.namespace, name) : undefined;
    const leads = (port: ServicePort): boolean => targetPortOf([port], port.port) === containerPort;
    const port = entry?.spec.target === record.workloadName ? entry.spec.ports.find(leads) : undefined;
    return entry === undefined || port === undefined ? [] : [{ entry, port }];
  });
  return found.sort((a, b) => (a.entry.record.name < b.entry.record.name ? -1 : 1));
}

/** Returns the number of pods that are ready endpoints of at least one of the service's ports. */
export function readyEndpointCount(state: ClusterView, namespace: string, service: string): number {
  const ports = findService(state, namespace, service)?.spec.ports ?? [];
  const pods = ports.flatMap(({ port }) => endpointsOf(state, namespace, service, port).map((e) => e.pod));
  return new Set(pods).size;
}

export function protocolOf(port: { readonly protocol: string } | undefined): string {
  return port === undefined || port.protocol === "" ? "TCP" : port.protocol;
}

function endpointOf(
  state: ClusterView,
  pod: PodEntry,
  containerPort: number,
  protocol: string,
): Endpoint | undefined {
  if (!isReady(pod, (node) => serves(state.node(node)))) return undefined;
  const node = state.node(pod.record.node);
  const address = addressOfNode(node);
  const mapping = pod.status?.hostPorts.find(
    (m) => m.containerPort === containerPort && m.protocol === protocol,
  );
  if (node === undefined || address === "" || mapping === undefined) return undefined;
  return {
    address,
    port: mapping.hostPort,
    pod: pod.record.name,
    node: node.name,
    zone: zoneOfNode(node),
    workload: pod.record.workloadName,
    protocol,
    opaque: opaqueByPod(pod.record.template, containerPort),
    localOnly: isLocalOnly(node),
  };
}
