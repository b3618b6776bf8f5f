import type { Node, Resource } from "@forage/proto/forage/operator/v1/operator";

/** An address of a service or a route. */
export interface Address {
  readonly address: string;
  /** The clients that can use the address, such as `in pods`. */
  readonly reach: string;
}

/** Returns the addresses of the resources. Those for clients outside of the cluster come first. */
export function addressesOf(resources: readonly Resource[], nodes: readonly Node[]): Address[] {
  return [
    ...resources.flatMap(routeAddresses),
    ...resources.flatMap((resource) => serviceAddresses(resource, nodes)),
  ];
}

function routeAddresses({ kind, route, spec }: Resource): Address[] {
  if (kind !== "route" || spec?.spec?.$case !== "route") return [];
  const rules = spec.spec.value.rules;
  const path = rules[0]?.matches[0]?.path?.value ?? "/";
  const gateway = route?.gateway ?? "";
  return (route?.hostnames ?? []).map(({ hostname, tls }) => ({
    address: `${tls === "" ? "http" : "https"}://${hostname}${path}`,
    reach: `through the gateway "${gateway}"`,
  }));
}

function serviceAddresses(resource: Resource, nodes: readonly Node[]): Address[] {
  const { kind, name, namespace, spec, virtualIps, nodePorts, loadBalancerIps } = resource;
  if (kind !== "service" || spec?.spec?.$case !== "service") return [];
  const { ports } = spec.spec.value;
  const host = nodes.find(({ ready }) => ready)?.report?.address;
  return ports.flatMap(({ port, protocol }): Address[] => {
    const isSame = (other: string): boolean => (other || "TCP") === (protocol || "TCP");
    const open = nodePorts.find((each) => each.port === port && isSame(each.protocol));
    const suffix = (protocol || "TCP") === "TCP" ? "" : `/${protocol.toLowerCase()}`;
    return [
      ...loadBalancerIps.map((ip) => ({
        address: `${hostAddress(ip, port)}${suffix}`,
        reach: "from outside the cluster",
      })),
      ...(open === undefined || host === undefined
        ? []
        : [{ address: `${hostAddress(host, open.nodePort)}${suffix}`, reach: "on every host" }]),
      { address: `${name}.${namespace}:${port}${suffix}`, reach: "in pods, by name" },
      ...virtualIps.map((ip) => ({
        address: `${hostAddress(ip, port)}${suffix}`,
        reach: "on hosts and in pods",
      })),
    ];
  });
}

function hostAddress(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
