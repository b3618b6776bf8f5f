import type { PortMapping, PortRequest } from "../network/network.ts";
import type { Pod } from "./pod.ts";

/** Returns the ports that the pod's containers declare. */
export function declaredPorts({ containers }: Pod): readonly PortRequest[] {
  return containers.flatMap(({ ports }) => ports);
}

/** Returns the ports to publish: the declared ones, then those that services use. */
export function desiredPorts(pod: Pod): readonly PortRequest[] {
  return [...declaredPorts(pod), ...(pod.servicePorts ?? [])];
}

/**
 * Returns the ports that a pod allocates at its start. On the host's own network another pod may already use a
 * service's port, which must not prevent this start. The pod then gets service ports when they are published.
 */
export function firstPorts(pod: Pod): readonly PortRequest[] {
  return pod.network?.hostNetwork === true ? declaredPorts(pod) : desiredPorts(pod);
}

/** Reports whether exactly the given ports are mapped. */
export function hasPorts(mapped: readonly PortMapping[], desired: readonly PortRequest[]): boolean {
  return (
    desired.every((port) => mapped.some((it) => isSame(it, port))) &&
    mapped.every((port) => desired.some((it) => isSame(it, port)))
  );
}

function isSame(a: PortRequest, b: PortRequest): boolean {
  return a.container === b.container && a.containerPort === b.containerPort && a.protocol === b.protocol;
}
