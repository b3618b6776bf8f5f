import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ContainerPort, ServicePort } from "@forage/proto/forest/v1/forage";

/**
 * The limit of undeclared ports. Each uses a host port on the node of every replica, from a range that all pods of the node
 * share.
 */
export const MAX_UNDECLARED_PORTS = 100;

/** Returns the container port and protocol of a service's port, such as `8080/TCP`. */
export function targetOf({ port, targetPort, protocol }: ServicePort): string {
  return portName(targetPort === 0 ? port : targetPort, protocol);
}

/** Returns the ports that containers of the template declare and that their nodes publish, such as `8080/TCP`. */
export function declaredPorts({ container, sidecars }: PodTemplate): ReadonlySet<string> {
  const ports = [...sidecars, ...(container === undefined ? [] : [container])].flatMap((it) => it.ports);
  return new Set(ports.map(({ containerPort, protocol }) => portName(containerPort, protocol)));
}

/**
 * Returns the target ports of services that no container of the template declares, and that nodes publish nevertheless. The
 * order is stable, and the number is limited to `MAX_UNDECLARED_PORTS`; the others have no endpoints.
 */
export function undeclaredPorts(
  template: PodTemplate | undefined,
  services: readonly { readonly ports: readonly ServicePort[] }[],
): ContainerPort[] {
  if (template === undefined || services.length === 0) return [];
  const declared = declaredPorts(template);
  const targets = services.flatMap(({ ports }) => ports.map(targetOf)).filter((it) => !declared.has(it));
  return [...new Set(targets)].sort().slice(0, MAX_UNDECLARED_PORTS).map(parse);
}

function portName(port: number, protocol: string): string {
  return `${port}/${protocol === "" ? "TCP" : protocol}`;
}

function parse(target: string): ContainerPort {
  const [containerPort = "", protocol = ""] = target.split("/");
  return { name: "", containerPort: Number(containerPort), protocol };
}
