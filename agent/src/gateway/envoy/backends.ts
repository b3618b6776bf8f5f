import type { GatewayBackend, GatewayHost, GatewayRule } from "@forage/proto/forage/agent/v1/agent";
import type { RequestMirror } from "@forage/proto/forest/v1/forage";

/** A port of a service, which is a cluster in Envoy. */
export interface ServicePortRef {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
}

/** Returns the cluster's name. Names of namespaces and services contain no slash. */
export function clusterName({ namespace, service, port }: ServicePortRef): string {
  return `${namespace}/${service}/${port}`;
}

/** Returns the target of a mirror. Its service is in the namespace of its route. */
export function mirrorTarget(rule: GatewayRule, { service, port }: RequestMirror): ServicePortRef {
  return { namespace: rule.route.split("/")[0] ?? "", service, port };
}

/** Returns every service port that the hosts' rules use, by the name of its cluster. */
export function backendsOf(hosts: Iterable<GatewayHost>): Map<string, ServicePortRef> {
  const found = new Map<string, ServicePortRef>();
  const add = (backend: ServicePortRef): void => {
    const { namespace, service, port } = backend;
    found.set(clusterName(backend), { namespace, service, port });
  };
  for (const host of hosts) {
    host.passthrough.forEach(add);
    for (const rule of host.rules) {
      rule.backends.forEach(add);
      for (const { filter } of rule.filters)
        if (filter?.$case === "requestMirror") add(mirrorTarget(rule, filter.value));
    }
  }
  return found;
}

/** Returns Envoy's weighted choice between clusters. The weights of backends with the same port are added. */
export function weightsOf(backends: readonly GatewayBackend[]): { name: string; weight: number }[] {
  const weights = new Map<string, number>();
  for (const backend of backends) {
    const name = clusterName(backend);
    weights.set(name, (weights.get(name) ?? 0) + backend.weight);
  }
  return [...weights].map(([name, weight]) => ({ name, weight }));
}
