import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { hostAddresses } from "../../control/addresses/announcing-nodes.ts";
import { NO_POOL } from "../../control/addresses/load-balancer-ips.ts";
import { requestedIps } from "../../control/addresses/requested-ips.ts";
import type { IpRange } from "../../ip/ip-range.ts";
import { LOAD_BALANCER_IP_ANNOTATION } from "../../service-network/service-state.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";

/**
 * Checks that each load balancer can get an address. @throws CoordinatorError INVALID with every load balancer for which no
 * address is free, or whose requested address is unavailable.
 */
export function checkLoadBalancerIps(
  { namespace, resources }: ApplyResourcesRequest,
  pool: readonly IpRange[],
  state: ClusterView,
): void {
  const findings = new Findings();
  const root = new Field(findings).at("resources");
  const taken = new Map<string, string>();
  let hosts: ReadonlyMap<string, string> | undefined;
  for (const [index, { name, spec }] of resources.entries()) {
    if (spec?.$case !== "service" || spec.value.type !== "LoadBalancer") continue;
    const field = root.item(index).at("service");
    if (pool.length === 0) {
      field.at("type").invalid(NO_POOL);
      continue;
    }
    const own = `${namespace}/${name}`;
    const annotation = field.at("annotations").key(LOAD_BALANCER_IP_ANNOTATION);
    for (const ip of requestedIps(spec.value.annotations)) {
      if (!pool.some((range) => range.has(ip)))
        annotation.invalid(
          `${ip} is not in the coordinator's pool, ${pool.map(({ text }) => text).join(", ")}`,
        );
      const owner = taken.get(ip) ?? ownerOf(ip, own, state);
      hosts ??= hostAddresses(state);
      const host = hosts.get(ip);
      if (host !== undefined) annotation.invalid(`${ip} is the address of node ${host}; choose another`);
      if (owner !== undefined && owner !== own)
        annotation.invalid(
          `${ip} belongs to service ${owner}; choose another, or leave the annotation out for a free one`,
        );
      taken.set(ip, own);
    }
  }
  findings.raise();
}

/** Returns another service that has or has requested the address. */
function ownerOf(ip: string, own: string, state: ClusterView): string | undefined {
  for (const { record } of state.serviceAddresses.all()) {
    const owner = `${record.namespace}/${record.name}`;
    if (owner !== own && record.loadBalancerIps.includes(ip)) return owner;
  }
  for (const { record } of state.resources()) {
    const spec = record.resource?.spec;
    const owner = `${record.namespace}/${record.name}`;
    if (owner === own || record.deleting || spec?.$case !== "service") continue;
    if (spec.value.type === "LoadBalancer" && requestedIps(spec.value.annotations).includes(ip)) return owner;
  }
  return undefined;
}
