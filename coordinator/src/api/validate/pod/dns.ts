import type { DnsOption, PodConfig, PodDnsConfig } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { addressProblem } from "../syntax/hosts.ts";
import { dnsSubdomainProblem } from "../syntax/names.ts";
import { choiceProblem } from "../syntax/text.ts";

/** Limits of resolvers for resolv.conf, as in Kubernetes. */
const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
const MAX_OPTIONS = 32;

export function validateDns({ dnsPolicy, dnsConfig }: PodConfig, field: Field): void {
  field.at("dns_policy").check(choiceProblem(dnsPolicy, ["ClusterFirst", "Default", "None"]));
  const config = field.at("dns_config");
  if (dnsPolicy === "None" && (dnsConfig?.nameservers ?? []).length === 0)
    config.at("nameservers").invalid("must not be empty when the DNS policy is None");
  if (dnsConfig !== undefined) validateDnsConfig(dnsConfig, config);
}

function validateDnsConfig({ nameservers, searches, options }: PodDnsConfig, field: Field): void {
  if (nameservers.length > MAX_NAMESERVERS)
    field
      .at("nameservers")
      .invalid(`must be at most ${MAX_NAMESERVERS}, but ${nameservers.length} were given`);
  for (const [index, server] of nameservers.entries())
    field.at("nameservers").item(index).check(addressProblem(server));
  if (searches.length > MAX_SEARCHES || searches.join(" ").length > MAX_SEARCH_CHARACTERS)
    field
      .at("searches")
      .invalid(`must be at most ${MAX_SEARCHES}, and ${MAX_SEARCH_CHARACTERS} characters together`);
  for (const [index, search] of searches.entries())
    field.at("searches").item(index).check(searchProblem(search));
  if (options.length > MAX_OPTIONS) field.at("options").invalid(`must be at most ${MAX_OPTIONS}`);
  for (const [index, option] of options.entries()) validateOption(option, field.at("options").item(index));
}

/** Validates a search domain, which may end with a dot. */
function searchProblem(search: string): string | undefined {
  return search === "." ? undefined : dnsSubdomainProblem(search.replace(/\.$/, ""));
}

/** Validates an option. Name and value become words in a line of resolv.conf. */
function validateOption({ name, value }: DnsOption, field: Field): void {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) field.at("name").invalid("must be an option such as ndots");
  if (!/^[A-Za-z0-9_.-]{0,64}$/.test(value)) field.at("value").invalid("must be a number or a word");
}
