import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { isReady } from "../control/workload/readiness.ts";
import { resourceKey } from "../model/keys.ts";
import { workloadKey } from "../model/workload.ts";
import type { PodEntry, ResourceEntry } from "../state/entries.ts";
import type { State } from "../state/state.ts";

/** Where one ready pod answers for one port of a service: the host's address and a port of the host. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
  readonly pod: string;
  readonly node: string;
  readonly zone: string;
  readonly workload: string;
  readonly protocol: string;
}

type ServiceEntry = ResourceEntry & { readonly spec: { target: string; ports: readonly ServicePort[] } };

/** The service's resource; undefined when there is none or it is being removed. */
export function findService(state: State, namespace: string, name: string): ServiceEntry | undefined {
  const entry = state.resource(resourceKey(namespace, "service", name));
  const spec = entry?.record.resource?.spec;
  if (entry === undefined || entry.record.deleting || spec?.$case !== "service") return undefined;
  return { ...entry, spec: spec.value };
}

/** The container port behind a service's port; a number that the service doesn't list stands for itself. */
export function targetPortOf(ports: readonly ServicePort[], port: number): number {
  const listed = ports.find((p) => p.port === port);
  if (listed === undefined) return port;
  return listed.targetPort === 0 ? listed.port : listed.targetPort;
}

/** Ready endpoints for one port, in a stable order. */
export function endpointsOf(state: State, namespace: string, service: string, port: number): Endpoint[] {
  const entry = findService(state, namespace, service);
  if (entry === undefined) return [];
  const targetPort = targetPortOf(entry.spec.ports, port);
  const protocol = protocolOf(entry.spec.ports.find((p) => p.port === port));
  const found: Endpoint[] = [];
  for (const pod of state.podsOfWorkload(workloadKey(namespace, "container_service", entry.spec.target))) {
    const endpoint = endpointOf(state, pod, targetPort, protocol);
    if (endpoint !== undefined) found.push(endpoint);
  }
  return found.sort((a, b) => (a.pod < b.pod ? -1 : 1));
}

/** Pods that serve at least one of the service's ports. */
export function readyEndpointCount(state: State, namespace: string, service: string): number {
  const ports = findService(state, namespace, service)?.spec.ports ?? [];
  const pods = ports.flatMap(({ port }) => endpointsOf(state, namespace, service, port).map((e) => e.pod));
  return new Set(pods).size;
}

export function protocolOf(port: { readonly protocol: string } | undefined): string {
  return port === undefined || port.protocol === "" ? "TCP" : port.protocol;
}

function endpointOf(
  state: State,
  pod: PodEntry,
  containerPort: number,
  protocol: string,
): Endpoint | undefined {
  if (!isReady(pod, (node) => state.node(node)?.health.ready ?? false)) return undefined;
  const node = state.node(pod.record.node);
  const address = node?.report?.report?.address ?? "";
  const mapping = pod.status?.hostPorts.find(
    (m) => m.containerPort === containerPort && m.protocol === protocol,
  );
  if (node === undefined || address === "" || mapping === undefined) return undefined;
  const labels = { ...node.report?.report?.labels, ...node.record.labels };
  return {
    address,
    port: mapping.hostPort,
    pod: pod.record.name,
    node: node.name,
    zone: labels["topology.kubernetes.io/zone"] ?? "",
    workload: pod.record.workloadName,
    protocol,
  };
}
