import { createHash } from "node:crypto";
import { isIPv4 } from "node:net";
import type { ServiceEndpoint, ServiceState, ServiceStatePort } from "@forage/proto/forage/agent/v1/agent";

/** How the host leads clients of one port of a service to its pods. */
export interface ServicePortRules {
  /** Letters and digits; the same for the same namespace, name, port and protocol. */
  readonly id: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  /** Where clients ask: `10.96.0.5 . tcp . 80`. */
  readonly addresses: readonly string[];
  /** `tcp . 30080`; undefined: not open on the hosts. */
  readonly nodePort: string | undefined;
  /** Never empty. */
  readonly endpoints: readonly EndpointRule[];
  /** How long a client stays with its pod; 0: for one connection. */
  readonly affinitySeconds: number;
}

export interface EndpointRule {
  /** Letters and digits; the same for the same address and port. */
  readonly id: string;
  readonly address: string;
  readonly port: number;
}

const PROTOCOLS = { TCP: "tcp", UDP: "udp", SCTP: "sctp" } as const;

/**
 * Pure: the rules of a service on one host. Pods of the host itself are reached by their own addresses, all others by their hosts'
 * addresses and ports. A port that no pod serves has no rules: what is sent to its address is refused.
 */
export function rulesOf(service: ServiceState, node: string): ServicePortRules[] {
  const { namespace, name, virtualIps, loadBalancerIps, affinitySeconds } = service;
  return service.ports.flatMap((port, index): ServicePortRules[] => {
    const protocol = PROTOCOLS[port.protocol as keyof typeof PROTOCOLS];
    const endpoints = service.endpoints.flatMap((endpoint) => ruleFor(endpoint, port, index, node) ?? []);
    if (protocol === undefined || endpoints.length === 0) return [];
    const ips = [...virtualIps, ...loadBalancerIps].filter((ip) => isIPv4(ip));
    const addresses = ips.map((ip) => `${ip} . ${protocol} . ${port.port}`);
    const nodePort = port.nodePort === 0 ? undefined : `${protocol} . ${port.nodePort}`;
    if (addresses.length === 0 && nodePort === undefined) return [];
    const id = shortHash(`${namespace}/${name}/${port.port}/${protocol}`);
    return [{ id, protocol, addresses, nodePort, endpoints: distinct(endpoints), affinitySeconds }];
  });
}

function ruleFor(
  endpoint: ServiceEndpoint,
  { targetPort }: ServiceStatePort,
  index: number,
  node: string,
): EndpointRule | undefined {
  const hostPort = endpoint.hostPorts[index] ?? 0;
  if (hostPort === 0) return undefined;
  const here = endpoint.node === node;
  if (!here && endpoint.local) return undefined;
  const address = here && !endpoint.hostNetwork ? endpoint.podIp : endpoint.hostIp;
  const port = here && !endpoint.hostNetwork ? targetPort : hostPort;
  // Hosts known by a name only can't be told to the kernel.
  return isIPv4(address) ? { id: shortHash(`${address}:${port}`), address, port } : undefined;
}

function distinct(endpoints: readonly EndpointRule[]): EndpointRule[] {
  return [...new Map(endpoints.map((endpoint) => [endpoint.id, endpoint])).values()];
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
