import { isIP } from "node:net";
import type { DnsOption, PodConfig } from "@forage/proto/forest/v1/forage";
import type { PodNetworkSpec } from "../pods/pod.ts";

// Domains become words of a resolv.conf.
const DOMAIN = /^(\.|[A-Za-z0-9_][A-Za-z0-9._-]{0,253})$/;
const OPTION = /^[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_.-]{1,64})?$/;

export function parseNetwork(config: PodConfig | undefined): PodNetworkSpec {
  const { nameservers = [], searches = [], options = [] } = config?.dnsConfig ?? {};
  const dnsPolicy = dnsPolicyOf(config?.dnsPolicy ?? "");
  if (dnsPolicy === "None" && nameservers.length === 0) {
    throw new Error("dns_policy None needs dns_config with at least one of nameservers");
  }
  return {
    hostNetwork: config?.hostNetwork ?? false,
    dnsPolicy,
    nameservers: all(nameservers, "nameservers", "an address", (it) => isIP(it) !== 0),
    searches: all(searches, "searches", "a domain", (it) => DOMAIN.test(it)),
    options: all(options.map(optionText), "options", "an option", (it) => OPTION.test(it)),
  };
}

function optionText({ name, value }: DnsOption): string {
  return value === "" ? name : `${name}:${value}`;
}

function all(
  texts: readonly string[],
  field: string,
  what: string,
  isValid: (text: string) => boolean,
): readonly string[] {
  const wrong = texts.find((it) => !isValid(it));
  if (wrong === undefined) return texts;
  throw new Error(`dns_config.${field}: ${JSON.stringify(wrong)} is not ${what}`);
}

function dnsPolicyOf(policy: string): PodNetworkSpec["dnsPolicy"] {
  if (policy === "") return "ClusterFirst";
  if (policy === "ClusterFirst" || policy === "Default" || policy === "None") return policy;
  throw new Error(`dns_policy: ${JSON.stringify(policy)} is neither ClusterFirst, Default nor None`);
}
