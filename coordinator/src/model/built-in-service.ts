import type { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import type { ServicePort } from "@forage/proto/forest/v1/forage";

/**
 * A service of the coordinator itself, which can be the backend of routes. An applied service with its name replaces it.
 */
export interface BuiltInService {
  readonly namespace: string;
  readonly name: string;
  /** The port of the service and of its endpoints. */
  readonly port: number;
  /** The IP addresses at which gateways reach the coordinator. */
  readonly addresses: readonly string[];
}

/** Holds the coordinator's own services. */
export class BuiltInServices {
  readonly #services: ReadonlyMap<string, BuiltInService>;

  constructor(services: readonly BuiltInService[] = []) {
    this.#services = new Map(services.map((it) => [`${it.namespace}/${it.name}`, it]));
  }

  all(): readonly BuiltInService[] {
    return [...this.#services.values()];
  }

  portsOf(namespace: string, name: string): readonly ServicePort[] | undefined {
    const service = this.#services.get(`${namespace}/${name}`);
    if (service === undefined) return undefined;
    return [{ name: "http", port: service.port, targetPort: service.port, protocol: "TCP", nodePort: 0 }];
  }

  /** Returns the service as agents see it: its endpoints are not pods, and it has no virtual IP. */
  stateOf(namespace: string, name: string): ServiceState | undefined {
    const service = this.#services.get(`${namespace}/${name}`);
    if (service === undefined) return undefined;
    const { port, addresses } = service;
    const outside = { node: "", podIp: "", podIpv6: "", hostIpv6: "", local: false, hostNetwork: true };
    return {
      ...{ namespace, name, type: "Headless", virtualIps: [], affinitySeconds: 0 },
      ...{ loadBalancerIps: [], announcedBy: "", announcedAlone: false },
      ports: [{ name: "http", port, protocol: "TCP", targetPort: port, nodePort: 0 }],
      endpoints: addresses.map((hostIp) => ({ ...outside, pod: "", hostIp, hostPorts: [port] })),
    };
  }
}
