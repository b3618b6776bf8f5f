import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { findService, type ServiceEntry } from "../endpoints/endpoints.ts";
import { isReady } from "../endpoints/readiness.ts";
import { resourceKey } from "../model/keys.ts";
import { declaredPorts, MAX_UNDECLARED_PORTS, targetOf, undeclaredPorts } from "../model/service-ports.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { serves } from "../state/serves.ts";

/** The reason why a service or one of its ports can have no endpoints, regardless of its pods. */
export interface ServiceFailure {
  readonly reason: "TargetNotFound" | "PortNotFound";
  readonly message: string;
  /** Whether the failure may end without an apply, once the nodes of the pods publish the port. */
  readonly mayPass: boolean;
}

/**
 * Returns the failure of the service itself; undefined if there is none or the service does not
 * exist.
 */
export function serviceFailure(
  state: ClusterView,
  namespace: string,
  name: string,
): ServiceFailure | undefined {
  const service = findService(state, namespace, name);
  if (service === undefined) return undefined;
  const { target } = service.spec;
  const entry = state.resource(resourceKey(namespace, "container_service", target));
  if (entry === undefined || entry.record.deleting) {
    const message = `there is no container_service/${target} in namespace "${namespace}"`;
    return { reason: "TargetNotFound", message, mayPass: false };
  }
  return portLeftOut(state, service) ?? portNotPublished(state, service);
}

function portLeftOut(state: ClusterView, { record, spec }: ServiceEntry): ServiceFailure | undefined {
  const { namespace } = record;
  const key = resourceKey(namespace, "container_service", spec.target);
  const template = state.resource(key)?.workload?.template;
  if (template === undefined) return undefined;
  const services = state
    .servicesTargeting(workloadKey(namespace, "container_service", spec.target))
    .flatMap(({ record: { name } }) => findService(state, namespace, name)?.spec ?? []);
  const published = new Set(declaredPorts(template));
  for (const { containerPort, protocol } of undeclaredPorts(template, services))
    published.add(`${containerPort}/${protocol}`);
  const missing = spec.ports.find((port) => !published.has(targetOf(port)));
  if (missing === undefined) return undefined;
  const message = `port ${missing.port} leads to ${targetOf(missing)}, which no container of container_service/${spec.target} declares, and its services lead to more than ${MAX_UNDECLARED_PORTS} such ports; add it to container.ports`;
  return { reason: "PortNotFound", message, mayPass: false };
}

function portNotPublished(state: ClusterView, { record, spec }: ServiceEntry): ServiceFailure | undefined {
  const ready = state
    .podsOfWorkload(workloadKey(record.namespace, "container_service", spec.target))
    .filter((pod) => isReady(pod, (node) => serves(state.node(node))));
  if (ready.length === 0) return undefined;
  const isPublished = (port: ServicePort): boolean =>
    ready.some(({ status }) =>
      status?.hostPorts.some((it) => `${it.containerPort}/${it.protocol}` === targetOf(port)),
    );
  const missing = spec.ports.find((port) => !isPublished(port));
  if (missing === undefined) return undefined;
  const message = `port ${missing.port} leads to ${targetOf(missing)}, which no node publishes for the ready pods of container_service/${spec.target} yet: an agent of an older version publishes only ports in container.ports, and on the host network the port may be taken`;
  return { reason: "PortNotFound", message, mayPass: true };
}
