import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { protocolOf } from "../../endpoints/endpoints.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Checks node ports. @throws CoordinatorError INVALID with every node port that is outside the range or belongs to another
 * service.
 */
export function checkNodePorts(
  { namespace, resources }: ApplyResourcesRequest,
  { first, last }: PortRange,
  state: ClusterView,
): void {
  const findings = new Findings();
  const root = new Field(findings).at("resources");
  const taken = new Map<string, string>();
  for (const [index, { name, spec }] of resources.entries()) {
    if (spec?.$case !== "service") continue;
    const own = `${namespace}/${name}`;
    const ports = root.item(index).at("service").at("ports");
    for (const [at, port] of spec.value.ports.entries()) {
      const { nodePort } = port;
      if (nodePort === 0) continue;
      const field = ports.item(at).at("node_port");
      if (nodePort < first || nodePort > last)
        field.invalid(`${nodePort} is not in the coordinator's range of ${first} to ${last}`);
      const key = `${nodePort}/${protocolOf(port)}`;
      const owner = taken.get(key) ?? ownerOf(key, own, state);
      if (owner !== undefined && owner !== own)
        field.invalid(`${key} belongs to service ${owner}; choose another, or leave it empty for a free one`);
      taken.set(key, own);
    }
  }
  findings.raise();
}

/** Returns another service that has or has requested the port. */
function ownerOf(key: string, own: string, state: ClusterView): string | undefined {
  for (const { record } of state.serviceAddresses.all()) {
    const owner = `${record.namespace}/${record.name}`;
    if (owner === own || record.releasedAt !== undefined) continue;
    if (record.nodePorts.some(({ nodePort, protocol }) => `${nodePort}/${protocol}` === key)) return owner;
  }
  for (const { record } of state.resources()) {
    const spec = record.resource?.spec;
    const owner = `${record.namespace}/${record.name}`;
    if (owner === own || record.deleting || spec?.$case !== "service") continue;
    const asked = spec.value.ports.some((port) => `${port.nodePort}/${protocolOf(port)}` === key);
    if (asked) return owner;
  }
  return undefined;
}
