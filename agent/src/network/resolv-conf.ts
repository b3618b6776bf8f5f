import { isIP } from "node:net";
import type { PodNetworkSpec } from "../pods/pod.ts";

export interface ResolvConf {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  /** Resolver options, such as `ndots:2` or `rotate`. */
  readonly options: readonly string[];
}

/** The DNS settings for the names of services. */
export interface ClusterDns {
  /** The cluster's domain, such as `cluster.local`. */
  readonly domain: string;
  /** The servers that resolve services' names. Empty: there are none, and the host's own servers are used. */
  readonly servers: readonly string[];
}

// The limits of C libraries' resolvers and of Kubernetes.
const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARACTERS_MAX = 2048;
// As in Kubernetes, `service.namespace.svc` is first resolved within the cluster.
const CLUSTER_NDOTS = "ndots:5";

export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = [];
  let searches: readonly string[] = [];
  const options: string[] = [];
  for (const line of text.split("\n")) {
    const [keyword, ...words] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    if (keyword === "nameserver" && words[0] !== undefined) nameservers.push(words[0]);
    // The last line takes precedence.
    if (keyword === "search" || keyword === "domain") searches = words;
    if (keyword === "options") options.push(...words);
  }
  return { nameservers, searches, options };
}

/**
 * Returns the resolver configuration of a pod's containers by Kubernetes' rules for `dns_policy`, extended by
 * `dns_config`.
 */
export function podResolvConf(
  pod: { readonly namespace: string; readonly network: PodNetworkSpec },
  host: ResolvConf,
  cluster: ClusterDns,
): ResolvConf {
  const { network } = pod;
  const base = baseOf(pod, host, cluster);
  return {
    nameservers: distinct([...base.nameservers, ...network.nameservers]).slice(0, NAMESERVERS_MAX),
    searches: fitting(distinct([...base.searches, ...network.searches])),
    options: mergedOptions(base.options, network.options),
  };
}

export function formatResolvConf({ nameservers, searches, options }: ResolvConf): string {
  const lines = [
    ...(nameservers.length === 0 ? ["# This host has no name server that pods can reach."] : []),
    ...nameservers.map((it) => `nameserver ${it}`),
    ...(searches.length === 0 ? [] : [`search ${searches.join(" ")}`]),
    ...(options.length === 0 ? [] : [`options ${options.join(" ")}`]),
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * Reports whether pods with their own network can reach a name server. They can't reach the host's loopback interface
 * or addresses that are bound to one of its links.
 */
export function isReachableFromPods(nameserver: string): boolean {
  if (isIP(nameserver) === 4) return !/^(127|0)\./.test(nameserver);
  return isIP(nameserver) === 6 && !/^(::1?$|::ffff:127\.|fe[89ab])/i.test(nameserver);
}

function baseOf(
  { namespace, network }: { readonly namespace: string; readonly network: PodNetworkSpec },
  host: ResolvConf,
  { domain, servers }: ClusterDns,
): ResolvConf {
  const { dnsPolicy, hostNetwork } = network;
  if (dnsPolicy === "None") return { nameservers: [], searches: [], options: [] };
  // On the host's network the host's own resolver is the right one, as in Kubernetes.
  if (hostNetwork) return host;
  const hosts = { ...host, nameservers: host.nameservers.filter(isReachableFromPods) };
  if (dnsPolicy === "Default") return hosts;
  const services = [`${namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return {
    nameservers: servers.length > 0 ? servers : hosts.nameservers,
    searches: distinct([...services, ...hosts.searches]),
    options: [CLUSTER_NDOTS],
  };
}

function mergedOptions(base: readonly string[], added: readonly string[]): readonly string[] {
  const byName = new Map<string, string>();
  for (const option of [...base, ...added]) byName.set(option.split(":", 1)[0] ?? option, option);
  return [...byName.values()];
}

function fitting(searches: readonly string[]): readonly string[] {
  const fits = searches.slice(0, SEARCHES_MAX);
  while (fits.join(" ").length > SEARCH_CHARACTERS_MAX) fits.pop();
  return fits;
}

function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
