import type { HostPort, PodSpec } from "../types.ts";

const ANY_ADDRESS = "0.0.0.0";

const NONE: readonly HostPort[] = [];

/** Returns the host ports of the pod's containers and sidecars. */
export function hostPortsOf(pod: PodSpec): readonly HostPort[] {
  let ports: HostPort[] | undefined;
  for (const container of pod.containers) ports = collect(container.hostPorts, ports);
  for (const container of pod.initContainers ?? []) {
    if (container.restartPolicy === "Always") ports = collect(container.hostPorts, ports);
  }
  return ports ?? NONE;
}

/** Returns the first of the `requested` ports that conflicts with one of the `taken` ports. */
export function conflictingPort(
  requested: readonly HostPort[],
  taken: readonly HostPort[],
): HostPort | undefined {
  return requested.find((port) => taken.some((other) => conflict(port, other)));
}

export function formatPort({ port, protocol, hostIP }: HostPort): string {
  return `${hostIP ? `${hostIP}:` : ""}${port}/${protocol || "TCP"}`;
}

function collect(
  more: readonly HostPort[] | undefined,
  into: HostPort[] | undefined,
): HostPort[] | undefined {
  if (!more?.length) return into;
  const ports = into ?? [];
  for (const port of more) if (port.port > 0) ports.push(port);
  return ports;
}

function conflict(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || (a.protocol || "TCP") !== (b.protocol || "TCP")) return false;
  const [ipA, ipB] = [a.hostIP || ANY_ADDRESS, b.hostIP || ANY_ADDRESS];
  return ipA === ipB || ipA === ANY_ADDRESS || ipB === ANY_ADDRESS;
}
