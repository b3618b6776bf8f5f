import { createHash } from "node:crypto";
import type { IpFamily } from "@forage/common/ip";
import type { ServiceEndpoint, ServiceState, ServiceStatePort } from "@forage/proto/forage/agent/v1/agent";
import { isOfFamily } from "../network/family-words.ts";

/** The host for which rules are computed. */
export interface Viewpoint {
  /** The name of this node. */
  readonly node: string;
  /** The address families in which it can reach other hosts. */
  readonly reach: readonly IpFamily[];
}

/** The rules for one port of a service and one address family, which lead clients to the service's pods. */
export interface ServicePortRules {
  readonly family: IpFamily;
  /** An id of letters and digits, equal for the same namespace, name, port and protocol. */
  readonly id: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  /** The addresses that clients use, such as `10.96.0.5 . tcp . 80`. */
  readonly addresses: readonly string[];
  /** The node port, such as `tcp . 30080`. Undefined: none. */
  readonly nodePort: string | undefined;
  /** The endpoints, at least one. */
  readonly endpoints: readonly EndpointRule[];
  /** The time for which a client stays with its pod. 0: for one connection. */
  readonly affinitySeconds: number;
}

export interface EndpointRule {
  /** An id of letters and digits, equal for the same address and port. */
  readonly id: string;
  readonly address: string;
  readonly port: number;
}

const PROTOCOLS = { TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const;

/**
 * Returns the rules of a service on one host for one address family, with endpoints of that family only. Pods of the
 * host itself are reached at their own addresses, all others at their hosts' addresses and ports. A port without pods
 * has no rules, so that connections to it are refused. Pure.
 */
export function rulesOf(service: ServiceState, viewpoint: Viewpoint, family: IpFamily): ServicePortRules[] {
  const { namespace, name, virtualIps, loadBalancerIps, affinitySeconds } = service;
  return service.ports.flatMap((port, index): ServicePortRules[] => {
    const protocol = PROTOCOLS[port.protocol as keyof typeof PROTOCOLS];
    const endpoints = service.endpoints.flatMap(
      (endpoint) => ruleFor(endpoint, { port, index, viewpoint, family }) ?? [],
    );
    if (protocol === undefined || endpoints.length === 0 || !isPort(port.port)) return [];
    const ips = [...virtualIps, ...loadBalancerIps].filter((ip) => isOfFamily(ip, family));
    const addresses = ips.map((ip) => `${ip} . ${protocol} . ${port.port}`);
    const nodePort = !isPort(port.nodePort) ? undefined : `${protocol} . ${port.nodePort}`;
    if (addresses.length === 0 && nodePort === undefined) return [];
    const id = shortHash(`${namespace}/${name}/${port.port}/${protocol}`);
    return [{ family, id, protocol, addresses, nodePort, endpoints: distinct(endpoints), affinitySeconds }];
  });
}

/**
 * Reports whether a number is a valid port. The kernel rejects an update as a whole, so one invalid number would
 * prevent the rules of every other service.
 */
function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port <= 65_535;
}

interface PortOfService {
  readonly port: ServiceStatePort;
  /** The index of the port in the service. */
  readonly index: number;
  readonly viewpoint: Viewpoint;
  readonly family: IpFamily;
}

function ruleFor(
  endpoint: ServiceEndpoint,
  { port: { targetPort }, index, viewpoint, family }: PortOfService,
): EndpointRule | undefined {
  const hostPort = endpoint.hostPorts[index] ?? 0;
  if (!isPort(hostPort) || !isWithinReach(endpoint, viewpoint, family)) return undefined;
  const { pod, host } = addressesIn(endpoint, family);
  const here = endpoint.node === viewpoint.node;
  const address = here && !endpoint.hostNetwork ? pod : host;
  const port = here && !endpoint.hostNetwork ? targetPort : hostPort;
  // Kernel rules need addresses, so hosts with only a name are skipped.
  return isOfFamily(address, family) && isPort(port)
    ? { id: shortHash(`${address}:${port}`), address, port }
    : undefined;
}

/**
 * Reports whether this host may reach the pod: its own pods always, pods of other nodes if they accept traffic from
 * others and this host has an address of their family.
 */
export function isWithinReach(
  { node, local }: Pick<ServiceEndpoint, "node" | "local">,
  viewpoint: Viewpoint,
  family: IpFamily,
): boolean {
  return node === viewpoint.node || (!local && viewpoint.reach.includes(family));
}

/** Returns the pod's addresses in one address family. */
export function addressesIn(
  { podIp, hostIp, podIpv6, hostIpv6 }: ServiceEndpoint,
  family: IpFamily,
): { readonly pod: string; readonly host: string } {
  return family === 4 ? { pod: podIp, host: hostIp } : { pod: podIpv6, host: hostIpv6 };
}

function distinct(endpoints: readonly EndpointRule[]): EndpointRule[] {
  return [...new Map(endpoints.map((endpoint) => [endpoint.id, endpoint])).values()];
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
