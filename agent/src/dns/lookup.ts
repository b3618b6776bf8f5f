import { isIPv4 } from "node:net";
import type { ServiceEndpoint, ServiceState, ServiceStatePort } from "@forage/proto/forage/agent/v1/agent";
import type { ServicesView } from "../services/known-services.ts";

/** What is known of a name. Names are in lower case, without the last dot. */
export type Lookup =
  | {
      readonly kind: "found";
      readonly records: readonly DnsRecord[];
      readonly additionals: readonly DnsRecord[];
    }
  /** The name is there, but nothing of that type. */
  | { readonly kind: "no-data" }
  | { readonly kind: "no-name" }
  /** Not a name of the cluster. */
  | { readonly kind: "elsewhere" };

export type DnsRecord =
  | { readonly type: "A"; readonly name: string; readonly address: string }
  | { readonly type: "SRV"; readonly name: string; readonly target: string; readonly port: number }
  | { readonly type: "PTR"; readonly name: string; readonly target: string };

export interface LookupWorld {
  readonly view: ServicesView;
  /** Where the coordinator has said nothing yet. */
  readonly domain: string;
  /** This host's name: its own pods are told by their own addresses. */
  readonly node: string;
}

const noData: Lookup = { kind: "no-data" };
const noName: Lookup = { kind: "no-name" };

/** Pure: Kubernetes' names for services and pods. `type` as in DNS: "A", "SRV", … */
export function lookUp(name: string, type: string, world: LookupWorld): Lookup {
  const domain = domainOf(world);
  if (name.endsWith(".in-addr.arpa")) return reverse(name, type, world, domain);
  if (name === domain) return noData;
  if (!name.endsWith(`.${domain}`)) return { kind: "elsewhere" };
  const labels = name.slice(0, -domain.length - 1).split(".");
  const kind = labels.pop();
  if (kind === "pod") return podName(name, type, labels);
  if (kind !== "svc") return noName;
  const namespace = labels.pop();
  if (namespace === undefined) return noData;
  const service = labels.pop();
  if (service === undefined) return hasNamespace(world.view, namespace) ? noData : noName;
  const state = world.view.services.get(`${namespace}/${service}`);
  if (state === undefined) return noName;
  return underService(name, labels, type, { ...world, state, domain });
}

export function domainOf({ view, domain }: LookupWorld): string {
  return view.clusterDomain === "" ? domain : view.clusterDomain;
}

interface ServiceWorld extends LookupWorld {
  readonly state: ServiceState;
}

function underService(name: string, labels: readonly string[], type: string, world: ServiceWorld): Lookup {
  const { state } = world;
  const [first = "", second = ""] = labels;
  if (labels.length === 0) {
    if (type === "A") return addresses(name, addressesOf(world));
    return type === "SRV" ? servers(name, state.ports, world) : noData;
  }
  if (labels.length === 1 && (first === "_tcp" || first === "_udp" || first === "_sctp")) return noData;
  if (labels.length === 2 && first.startsWith("_") && second.startsWith("_")) {
    const named = (port: ServiceStatePort): boolean =>
      `_${port.name}` === first && `_${port.protocol.toLowerCase()}` === second;
    const port = state.ports.find(named);
    if (port === undefined) return noName;
    return type === "SRV" ? servers(name, [port], world) : noData;
  }
  const endpoint =
    labels.length === 1 && isHeadless(state) ? state.endpoints.find(({ pod }) => pod === first) : undefined;
  if (endpoint === undefined) return noName;
  return type === "A" ? addresses(name, [addressOf(endpoint, world)]) : noData;
}

/** A headless service is its pods; any other has its virtual IPs. */
function addressesOf(world: ServiceWorld): readonly string[] {
  const { state } = world;
  if (!isHeadless(state)) return state.virtualIps;
  const reachable = state.endpoints.filter(({ local, node }) => !local || node === world.node);
  return [...new Set(reachable.map((endpoint) => addressOf(endpoint, world)))];
}

/** Pods of other hosts are behind their hosts' addresses, at the ports that SRV records tell. */
function addressOf(endpoint: ServiceEndpoint, { node }: LookupWorld): string {
  return isHere(endpoint, node) ? endpoint.podIp : endpoint.hostIp;
}

function isHere(endpoint: ServiceEndpoint, node: string): boolean {
  return endpoint.node === node && !endpoint.hostNetwork && endpoint.podIp !== "";
}

function servers(name: string, ports: readonly ServiceStatePort[], world: ServiceWorld): Lookup {
  const { state, node } = world;
  const own = `${state.name}.${state.namespace}.svc.${domainOf(world)}`;
  if (!isHeadless(state)) {
    const records = ports.map(({ port }) => ({ type: "SRV", name, target: own, port }) as const);
    const additionals = state.virtualIps.map((address) => ({ type: "A", name: own, address }) as const);
    return records.length === 0 ? noData : { kind: "found", records, additionals };
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
    if (found.length > 0) additionals.push({ type: "A", name: target, address: addressOf(endpoint, world) });
  }
  return records.length === 0 ? noData : { kind: "found", records, additionals };
}

function addresses(name: string, found: readonly string[]): Lookup {
  const records = found.filter((ip) => isIPv4(ip)).map((address) => ({ type: "A", name, address }) as const);
  return records.length === 0 ? noData : { kind: "found", records, additionals: [] };
}

/** `10-64-0-2.shop.pod`: nothing but another way to write an address. */
function podName(name: string, type: string, labels: readonly string[]): Lookup {
  const [written = ""] = labels;
  if (labels.length < 2) return noData;
  const address = written.replaceAll("-", ".");
  if (labels.length > 2 || !isIPv4(address)) return noName;
  return type === "A" ? addresses(name, [address]) : noData;
}

/** Virtual IPs only: whose other addresses are is for others to say. */
function reverse(name: string, type: string, { view }: LookupWorld, domain: string): Lookup {
  const ip = name.slice(0, -".in-addr.arpa".length).split(".").reverse().join(".");
  for (const state of view.services.values()) {
    if (!state.virtualIps.includes(ip)) continue;
    const target = `${state.name}.${state.namespace}.svc.${domain}`;
    return type === "PTR"
      ? { kind: "found", records: [{ type: "PTR", name, target }], additionals: [] }
      : noData;
  }
  return { kind: "elsewhere" };
}

function hasNamespace({ services }: ServicesView, namespace: string): boolean {
  for (const key of services.keys()) if (key.startsWith(`${namespace}/`)) return true;
  return false;
}

function isHeadless({ type }: ServiceState): boolean {
  return type === "Headless";
}
