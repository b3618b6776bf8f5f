import type { PodConfig } from "@forage/proto/forest/v1/forage";
import type { PodNetworkSpec } from "../pods/pod.ts";

export function parseNetwork(config: PodConfig | undefined): PodNetworkSpec {
  const { nameservers = [], searches = [], options = [] } = config?.dnsConfig ?? {};
  const dnsPolicy = dnsPolicyOf(config?.dnsPolicy ?? "");
  if (dnsPolicy === "None" && nameservers.length === 0) {
    throw new Error("dns_policy None needs dns_config with at least one of nameservers");
  }
  return {
    hostNetwork: config?.hostNetwork ?? false,
    dnsPolicy,
    nameservers,
    searches,
    options: options.map(({ name, value }) => (value === "" ? name : `${name}:${value}`)),
  };
}

function dnsPolicyOf(policy: string): PodNetworkSpec["dnsPolicy"] {
  if (policy === "") return "ClusterFirst";
  if (policy === "ClusterFirst" || policy === "Default" || policy === "None") return policy;
  throw new Error(`dns_policy: ${JSON.stringify(policy)} is neither ClusterFirst, Default nor None`);
}
