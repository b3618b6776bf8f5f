import type { Update, WeightedAddr } from "@forage/proto/destination";
import { toTcpAddress } from "./address.ts";
import type { Endpoint } from "./endpoints.ts";

/** What a stream has told its client: endpoints by `address:port`, or that there are none. */
export type Told = { readonly exists: boolean; readonly endpoints: ReadonlyMap<string, Endpoint> };

/** Linkerd's proxies take any weight; this is the one its own controller gives everyone. */
const weight = 10_000;

/**
 * Pure: the messages that lead from what was told to what is. Addresses are the key, so a pod that takes over another's
 * address loses nothing; removals come first and never name an address that the new set holds. The first message holds
 * the complete set, because proxies replace all they knew by it.
 */
export function updatesBetween(
  told: Told | undefined,
  exists: boolean,
  endpoints: readonly Endpoint[],
  labels: Readonly<Record<string, string>>,
): { readonly updates: Update[]; readonly told: Told } {
  // Of two that claim one address the last has it. Hosts known by name only can't be told: proxies take addresses.
  const reachable = endpoints.filter((endpoint) => addressOf(endpoint) !== undefined);
  const now = new Map(reachable.map((endpoint) => [keyOf(endpoint), endpoint]));
  const next: Told = { exists, endpoints: now };
  if (now.size === 0) {
    const same = told !== undefined && told.exists === exists && told.endpoints.size === 0;
    return { updates: same ? [] : [{ update: { $case: "noEndpoints", value: { exists } } }], told: next };
  }
  const before = told?.endpoints ?? new Map<string, Endpoint>();
  const updates: Update[] = [];
  const gone = [...before.values()].filter((endpoint) => !now.has(keyOf(endpoint)));
  if (gone.length > 0) {
    updates.push({ update: { $case: "remove", value: { addrs: gone.flatMap((e) => addressOf(e) ?? []) } } });
  }
  const added = [...now.values()].filter((endpoint) => !sameEndpoint(before.get(keyOf(endpoint)), endpoint));
  if (added.length > 0) {
    updates.push({
      update: { $case: "add", value: { addrs: added.map(toWeighted), metricLabels: { ...labels } } },
    });
  }
  return { updates, told: next };
}

function toWeighted(endpoint: Endpoint): WeightedAddr {
  const metricLabels: Record<string, string> = {
    pod: endpoint.pod,
    node: endpoint.node,
    workload: endpoint.workload,
  };
  if (endpoint.zone !== "") metricLabels.zone = endpoint.zone;
  return {
    addr: addressOf(endpoint),
    weight,
    metricLabels,
    tlsIdentity: undefined,
    protocolHint: undefined,
    authorityOverride: undefined,
    http2: undefined,
    resourceRef: undefined,
  };
}

function addressOf({ address, port }: Endpoint) {
  return toTcpAddress(address, port);
}

function keyOf({ address, port }: Endpoint): string {
  return `${address}|${port}`;
}

function sameEndpoint(a: Endpoint | undefined, b: Endpoint): boolean {
  return (
    a !== undefined && a.pod === b.pod && a.node === b.node && a.zone === b.zone && a.workload === b.workload
  );
}
