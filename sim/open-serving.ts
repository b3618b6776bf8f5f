import { KnownGateway } from "../agent/src/gateway/known-gateway.ts";
import type { JournalFiles } from "../agent/src/journal/journal-files.ts";
import type { JournalKey } from "../agent/src/journal/journal-key.ts";
import { HostServiceNetwork } from "../agent/src/service-network.ts";
import type { Serving } from "./agent-life.ts";
import type { AgentAccess, ServingHost } from "./serving-host.ts";
import { SimGateway } from "./sim-gateway.ts";

export interface OpenServingOptions extends AgentAccess {
  readonly host: ServingHost;
  readonly key: JournalKey;
  readonly files: JournalFiles;
  readonly note: (line: string) => void;
}

/**
 * Opens the real service network and load balancer of an agent, and a gateway with a simulated proxy, on a simulated
 * host.
 */
export async function openServing({
  host,
  key,
  files,
  note,
  ...access
}: OpenServingOptions): Promise<Serving> {
  const { clock, random } = access;
  const noteDamage = (path: string, reason: string): void => note(`${path} is damaged: ${reason}`);
  const services = await HostServiceNetwork.open({
    ...{
      dataDir: "/data",
      instance: "sim",
      podCidr: "10.64.0.0/16",
      podCidr6: undefined,
      nodeName: host.name,
    },
    ...{ reach: [4], clusterDomain: "cluster.local", dns: false, balancerInterface: undefined },
    ...{ clock, random, files, noteDamage, run: host.commandsFor(access) },
    hostInterfaces: () => interfacesOf(host),
    onEvent: (event, fields) => note(`${event} ${JSON.stringify(fields)}`),
    onProblem: (event, error) => note(`${event}: ${String(error)}`),
  });
  const known = await KnownGateway.open({
    ...{ dir: "/data/gateway", key, clock, files },
    onError: (error) => note(`gateway not kept: ${String(error)}`),
  });
  return { services, gateway: new SimGateway({ ...access, host, known, services: services.known }) };
}

function interfacesOf({ address }: ServingHost) {
  const common = { address, netmask: "255.255.255.0", mac: "02:00:00:00:00:00", internal: false };
  return { eth0: [{ ...common, family: "IPv4" as const, cidr: `${address}/24` }] };
}
