import { isIP } from "node:net";
import { familyOf, formatIp, type IpFamily, parseIp } from "@forage/common/ip";
import type { ServiceEndpoint, ServiceState, ServiceStatePort } from "@forage/proto/forage/agent/v1/agent";
import { isOfFamily } from "../network/family-words.ts";
import type { ServicesView } from "../services/known-services.ts";
import { addressesIn, isWithinReach, type Viewpoint } from "../services/port-rules.ts";

/** The result of a look-up. Names are in lower case, without the final dot. */
export type Lookup =
  | {
      readonly type: "found";
      readonly records: readonly DnsRecord[];
      readonly additionals: readonly DnsRecord[];
    }
  /** The name exists, but has no records of this type. */
  | { readonly type: "no-data" }
  | { readonly type: "no-name" }
  /** The name is not one of the cluster's. */
  | { readonly type: "elsewhere" };

export type DnsRecord =
  | { readonly type: "A" | "AAAA"; readonly name: string; readonly address: string }
  | { readonly type: "SRV"; readonly name: string; readonly target: string; readonly port: number }
  | { readonly type: "PTR"; readonly name: string; readonly target: string };

export interface LookupDependencies {
  readonly view: ServicesView;
  /** The cluster domain until the coordinator's arrives. */
  readonly domain: string;
  /** The viewpoint of this host, whose own pods resolve to their own addresses. */
  readonly viewpoint: Viewpoint;
  /**
   * The families in which this host's pods have addresses. Other addresses are omitted, because pods could not reach
   * them.
   */
  readonly families: readonly IpFamily[];
  /** The addresses of Destination for pods of this host, under the name `destination.forage.<domain>`. */
  readonly destination?: readonly string[];
}

const NO_DATA: Lookup = { type: "no-data" };
const NO_NAME: Lookup = { type: "no-name" };

/** Resolves Kubernetes' names of services and pods. `type` is a DNS record type: "A", "SRV", …. Pure. */
export function lookUp(name: string, type: string, dependencies: LookupDependencies): Lookup {
  const domain = domainOf(dependencies);
  const reversed = reversedAddress(name);
  if (reversed !== undefined) return reverse(name, reversed, type, dependencies);
  if (name === domain) return NO_DATA;
  if (!name.endsWith(`.${domain}`)) return { type: "elsewhere" };
  const labels = name.slice(0, -domain.length - 1).split(".");
  if (labels.join(".") === "destination.forage" && dependencies.destination?.length)
    return isAddressType(type) ? addresses(name, type, dependencies.destination) : NO_DATA;
  const kind = labels.pop();
  if (kind === "pod") return podName(name, type, labels);
  if (kind !== "svc") return NO_NAME;
  const namespace = labels.pop();
  if (namespace === undefined) return NO_DATA;
  const service = labels.pop();
  if (service === undefined) return hasNamespace(dependencies.view, namespace) ? NO_DATA : NO_NAME;
  const state = dependencies.view.services.get(`${namespace}/${service}`);
  if (state === undefined) return NO_NAME;
  return underService(name, labels, type, { ...dependencies, state, domain });
}

export function domainOf({ view, domain }: LookupDependencies): string {
  return view.clusterDomain === "" ? domain : view.clusterDomain;
}

interface ServiceWorld extends LookupDependencies {
  readonly state: ServiceState;
}

function underService(
  name: string,
  labels: readonly string[],
  type: string,
  dependencies: ServiceWorld,
): Lookup {
  const { state } = dependencies;
  const [first = "", second = ""] = labels;
  if (labels.length === 0) {
    if (isAddressType(type)) return addresses(name, type, addressesOf(dependencies));
    return type === "SRV" ? servers(name, state.ports, dependencies) : NO_DATA;
  }
  if (labels.length === 1 && (first === "_tcp" || first === "_udp" || first === "_sctp")) return NO_DATA;
  if (labels.length === 2 && first.startsWith("_") && second.startsWith("_")) {
    const named = (port: ServiceStatePort): boolean =>
      `_${port.name}` === first && `_${port.protocol.toLowerCase()}` === second;
    const port = state.ports.find(named);
    if (port === undefined) return NO_NAME;
    return type === "SRV" ? servers(name, [port], dependencies) : NO_DATA;
  }
  const endpoint =
    labels.length === 1 && isHeadless(state) ? state.endpoints.find(({ pod }) => pod === first) : undefined;
  if (endpoint === undefined) return NO_NAME;
  return isAddressType(type) ? addresses(name, type, waysTo(endpoint, dependencies)) : NO_DATA;
}

function isAddressType(type: string): type is "A" | "AAAA" {
  return type === "A" || type === "AAAA";
}

/**
 * Returns the addresses of a service. A headless service resolves to its pods, any other to its virtual IPs. A virtual
 * IP is omitted if there are pods but none is reachable in its family, because a client that uses the first address
 * would be refused.
 */
function addressesOf(dependencies: ServiceWorld): readonly string[] {
  const { state } = dependencies;
  const ways = [...new Set(state.endpoints.flatMap((endpoint) => waysTo(endpoint, dependencies)))];
  if (isHeadless(state)) return ways;
  const served = new Set(ways.map(familyOf));
  return state.virtualIps
    .filter((ip) => dependencies.families.includes(familyOf(ip)))
    .filter((ip) => served.size === 0 || served.has(familyOf(ip)));
}

/**
 * Returns at most one address for each family. A pod of another host is reached at its host's address, at the port in
 * the SRV record.
 */
function waysTo(endpoint: ServiceEndpoint, { viewpoint, families }: LookupDependencies): string[] {
  return families.flatMap((family) => {
    if (!isWithinReach(endpoint, viewpoint, family)) return [];
    const { pod, host } = addressesIn(endpoint, family);
    const address = isHere(endpoint, viewpoint.node) ? pod : host;
    return isOfFamily(address, family) ? [address] : [];
  });
}

function isHere(endpoint: ServiceEndpoint, node: string): boolean {
  return endpoint.node === node && !endpoint.hostNetwork && endpoint.podIp !== "";
}

function recordOf(name: string, address: string): DnsRecord {
  return { type: familyOf(address) === 4 ? "A" : "AAAA", name, address };
}

function servers(name: string, ports: readonly ServiceStatePort[], dependencies: ServiceWorld): Lookup {
  const { state, viewpoint } = dependencies;
  const { node } = viewpoint;
  const own = `${state.name}.${state.namespace}.svc.${domainOf(dependencies)}`;
  if (!isHeadless(state)) {
    const records = ports.map(({ port }) => ({ type: "SRV", name, target: own, port }) as const);
    const additionals = addressesOf(dependencies).map((address) => recordOf(own, address));
    return records.length === 0 ? NO_DATA : { type: "found", records, additionals };
  }
  const records: DnsRecord[] = [];
  const additionals: DnsRecord[] = [];
  for (const endpoint of state.endpoints) {
    const target = `${endpoint.pod}.${own}`;
    const found = ports.flatMap((port): DnsRecord[] => {
      const hostPort = endpoint.hostPorts[state.ports.indexOf(port)] ?? 0;
      if (hostPort === 0 || (endpoint.local && endpoint.node !== node)) return [];
      return [{ type: "SRV", name, target, port: isHere(endpoint, node) ? port.targetPort : hostPort }];
    });
    records.push(...found);
    if (found.length > 0)
      additionals.push(...waysTo(endpoint, dependencies).map((address) => recordOf(target, address)));
  }
  return records.length === 0 ? NO_DATA : { type: "found", records, additionals };
}

function addresses(name: string, type: "A" | "AAAA", found: readonly string[]): Lookup {
  const records = found.map((address) => recordOf(name, address)).filter((record) => record.type === type);
  return records.length === 0 ? NO_DATA : { type: "found", records, additionals: [] };
}

/** Resolves names such as `10-64-0-2.shop.pod` and `fd64--2.shop.pod`, which contain an address. */
function podName(name: string, type: string, labels: readonly string[]): Lookup {
  const [written = ""] = labels;
  if (labels.length < 2) return NO_DATA;
  const address = [written.replaceAll("-", "."), written.replaceAll("-", ":")].find((it) => isIP(it) !== 0);
  if (labels.length > 2 || address === undefined) return NO_NAME;
  return isAddressType(type) ? addresses(name, type, [address]) : NO_DATA;
}

/** Answers reverse queries for virtual IPs. The host's name servers answer for all other addresses. */
function reverse(name: string, ip: string, type: string, dependencies: LookupDependencies): Lookup {
  for (const state of dependencies.view.services.values()) {
    if (!state.virtualIps.includes(ip)) continue;
    const target = `${state.name}.${state.namespace}.svc.${domainOf(dependencies)}`;
    return type === "PTR"
      ? { type: "found", records: [{ type: "PTR", name, target }], additionals: [] }
      : NO_DATA;
  }
  return { type: "elsewhere" };
}

/**
 * Returns the address of a reverse name (`in-addr.arpa`, `ip6.arpa`) in the kernel's notation. Undefined for any other
 * name.
 */
function reversedAddress(name: string): string | undefined {
  if (name.endsWith(".in-addr.arpa"))
    return name.slice(0, -".in-addr.arpa".length).split(".").reverse().join(".");
  if (!name.endsWith(".ip6.arpa")) return undefined;
  const digits = name.slice(0, -".ip6.arpa".length).split(".").reverse();
  const groups = Array.from({ length: 8 }, (_, index) => digits.slice(index * 4, index * 4 + 4).join(""));
  const isWhole = digits.length === 32 && digits.every((digit) => /^[0-9a-f]$/.test(digit));
  const ip = isWhole ? parseIp(groups.join(":")) : undefined;
  return ip === undefined ? "" : formatIp(ip);
}

function hasNamespace({ services }: ServicesView, namespace: string): boolean {
  for (const key of services.keys()) if (key.startsWith(`${namespace}/`)) return true;
  return false;
}

function isHeadless({ type }: ServiceState): boolean {
  return type === "Headless";
}
