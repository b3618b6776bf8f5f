import type { EndpointRule, ServicePortRules } from "./port-rules.ts";
import type { RulesById } from "./rules-text.ts";

/**
 * The limit of addresses that are cleaned one by one. Each costs a process that scans all tracked connections; for more
 * addresses one scan serves all.
 */
const MAX_ADDRESSES = 8;
const HALF_OPEN = ["-p", "tcp", "--state", "SYN_SENT"] as const;

/**
 * Returns conntrack's options for the connections to forget after a change of rules. Their next packet then uses the
 * new rules. Otherwise UDP clients that send without pauses would keep reaching a pod that no longer serves, and TCP
 * clients would keep retrying a pod that does not respond. `from` may omit rules that are equal in `desired`. Pure.
 */
export function staleConnections(from: RulesById, desired: RulesById): string[][] {
  const lost = [...from.values()].map((before) => ({ before, endpoints: lostEndpoints(before, desired) }));
  const changed = lost.filter(({ endpoints }) => endpoints.length > 0);
  const udp = changed.flatMap(({ before }) => (before.protocol === "udp" ? waysTo(before) : []));
  const tcp = changed.flatMap(({ before, endpoints }) => (before.protocol === "tcp" ? endpoints : []));
  return [...udp, ...halfOpenOptions(tcp)];
}

function lostEndpoints({ id, endpoints }: ServicePortRules, desired: RulesById): EndpointRule[] {
  const left = new Set(desired.get(id)?.endpoints.map((endpoint) => endpoint.id));
  return endpoints.filter((endpoint) => !left.has(endpoint.id));
}

function waysTo({ addresses, nodePort }: ServicePortRules): string[][] {
  const matches = addresses.map((key) => {
    const [ip = "", , port = ""] = key.split(" . ");
    return ["-p", "udp", "--orig-dst", ip, "--orig-port-dst", port];
  });
  const port = nodePort?.split(" . ")[1];
  return port === undefined ? matches : [...matches, ["-p", "udp", "--orig-port-dst", port]];
}

/**
 * Returns the options for half-open connections to these endpoints. A lost host has many endpoints with one address.
 */
function halfOpenOptions(endpoints: readonly EndpointRule[]): string[][] {
  const portsOf = new Map<string, Set<number>>();
  for (const { address, port } of endpoints)
    portsOf.set(address, (portsOf.get(address) ?? new Set()).add(port));
  if (portsOf.size > MAX_ADDRESSES) return [[...HALF_OPEN, "--dst-nat"]];
  return [...portsOf].map(([address, [port, ...others]]) => {
    const ports = others.length === 0 ? ["--reply-port-src", String(port)] : [];
    return [...HALF_OPEN, "--reply-src", address, ...ports];
  });
}
