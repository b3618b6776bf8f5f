import type { PortMapping, PortRequest } from "./network.ts";
import { MAP } from "./port-rules.ts";
import { CommandFailed, type RunCommand } from "./run-command.ts";

/** An element of the kernel's map of host ports. */
export interface PublishedPort {
  readonly protocol: PortRequest["protocol"];
  readonly hostPort: number;
  readonly address: string;
  readonly port: number;
}

const ELEMENT = /\b(tcp|udp|sctp) \. (\d+) : ([\d.]+) \. (\d+)/g;
const PROTOCOLS = { tcp: "TCP", udp: "UDP", sctp: "SCTP" } as const;

/** Returns the current elements of the kernel's table of host ports, or none if there is no table. */
export async function readPublished(run: RunCommand, table: string): Promise<readonly PublishedPort[]> {
  try {
    return parsePublished(await run("nft", ["list", "map", "ip", table, MAP]));
  } catch (error) {
    if (error instanceof CommandFailed) return [];
    throw error;
  }
}

export function parsePublished(text: string): readonly PublishedPort[] {
  return [...text.matchAll(ELEMENT)].map(([, protocol, hostPort, address = "", port]) => ({
    protocol: PROTOCOLS[protocol as keyof typeof PROTOCOLS],
    hostPort: Number(hostPort),
    address,
    port: Number(port),
  }));
}

/** Returns the host ports for all the given ports of a pod's address. Undefined if one of them has none. */
export function portsOf(
  published: readonly PublishedPort[],
  address: string,
  desired: readonly PortRequest[],
): readonly PortMapping[] | undefined {
  const mappings: PortMapping[] = [];
  for (const request of desired) {
    const found = published.find(
      (it) => it.address === address && it.protocol === request.protocol && it.port === request.containerPort,
    );
    if (found === undefined) return undefined;
    mappings.push({ ...request, hostPort: found.hostPort });
  }
  return mappings;
}
