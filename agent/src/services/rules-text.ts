import { familyOf } from "@forage/common/ip";
import { FAMILY_WORDS, type FamilyKeywords } from "../network/family-words.ts";
import type { EndpointRule, ServicePortRules } from "./port-rules.ts";

/** The inputs of one agent's rules for services, for one address family: that of the pods' CIDR. */
export interface RulesOptions {
  readonly table: string;
  /** The CIDR of pods on every host. */
  readonly podCidr: string;
  readonly virtualIpRanges: readonly string[];
  /** The load balancer addresses of all services, with and without endpoints. Only services answer on them. */
  readonly balancerIps: readonly string[];
}

export type RulesById = ReadonlyMap<string, ServicePortRules>;

/**
 * A bit of the packet mark. Marked packets leave with the host's address, so that the response returns to this host.
 */
const MASQUERADE_MARK = "0x4000";

/**
 * Returns the whole table, which replaces the former one in one transaction. nft requires that definitions precede
 * their use. Pure.
 */
export function fullText(options: RulesOptions, rules: RulesById): string {
  const table = tableOf(options);
  const { addressType } = keywordsOf(options);
  const all = [...rules.values()];
  const sets = all.flatMap(affinitySets).map((set) => `  ${set.declaration}\n`);
  return `add table ${table}
delete table ${table}
table ${table} {
  set virtual_ips {
    type ${addressType}
    flags interval${elements(options.virtualIpRanges)}
  }
  set balancer_ips {
    type ${addressType}${elements(options.balancerIps)}
  }
${sets.join("")}${all.flatMap((rule) => chainsOf(rule, options)).join("")}  map addresses {
    type ${addressType} . inet_proto . inet_service : verdict${elements(all.flatMap(addressElements))}
  }
  map node_ports {
    type inet_proto . inet_service : verdict${elements(all.flatMap(nodePortElements))}
  }
${baseChains(options)}}
`;
}

/**
 * Returns the change from one set of rules to the other as one transaction; empty if they are equal. Both may omit the
 * ids of unchanged rules. Pure.
 */
export function deltaText(options: RulesOptions, from: RulesById, to: RulesById): string {
  const table = tableOf(options);
  const removed = [...from.values()].filter((rule) => !to.has(rule.id));
  const added = [...to.values()].filter((rule) => !from.has(rule.id));
  const changed = [...to.values()].flatMap((after) => {
    const before = from.get(after.id);
    return before === undefined || sameRules(before, after) ? [] : [{ before, after }];
  });
  const lines: string[] = [];
  const drop = (map: string, keys: readonly string[]): void => {
    if (keys.length > 0) lines.push(`delete element ${table} ${map} { ${keys.join(", ")} }`);
  };
  const put = (map: string, entries: readonly string[]): void => {
    if (entries.length > 0) lines.push(`add element ${table} ${map} { ${entries.join(", ")} }`);
  };
  const lost = (keysOf: (rule: ServicePortRules) => readonly string[]): string[] => [
    ...removed.flatMap(keysOf),
    ...changed.flatMap(({ before, after }) => keysOf(before).filter((key) => !keysOf(after).includes(key))),
  ];
  drop(
    "addresses",
    lost(({ addresses }) => addresses),
  );
  drop("node_ports", lost(nodePortKeys));
  for (const rule of added) lines.push(...additions(rule, undefined, options));
  for (const { before, after } of changed) lines.push(...additions(after, before, options));
  const won = (elementsOf: (rule: ServicePortRules) => readonly string[]): string[] => [
    ...added.flatMap(elementsOf),
    ...changed.flatMap(({ before, after }) =>
      elementsOf(after).filter((element) => !elementsOf(before).includes(element)),
    ),
  ];
  put("addresses", won(addressElements));
  put("node_ports", won(nodePortElements));
  for (const rule of removed) lines.push(...removals(rule, undefined, table));
  for (const { before, after } of changed) lines.push(...removals(before, after, table));
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

/** Returns the change from the earlier load balancer addresses to the current ones; empty if they are equal. Pure. */
export function balancerDeltaText(
  options: Pick<RulesOptions, "table" | "podCidr">,
  from: readonly string[],
  to: readonly string[],
): string {
  const table = tableOf(options);
  const line = (verb: string, ips: readonly string[]): string =>
    ips.length === 0 ? "" : `${verb} element ${table} balancer_ips { ${ips.join(", ")} }\n`;
  const gone = from.filter((ip) => !to.includes(ip));
  const added = to.filter((ip) => !from.includes(ip));
  return line("delete", gone) + line("add", added);
}

/** Replaces an empty chain by another. Undefined: none. Pure. */
export function markText(
  options: Pick<RulesOptions, "table" | "podCidr">,
  from: string | undefined,
  to: string | undefined,
): string {
  if (from === to) return "";
  const table = tableOf(options);
  const gone = from === undefined ? "" : `delete chain ${table} ${from}\n`;
  return to === undefined ? gone : `${gone}add chain ${table} ${to}\n`;
}

export function sameRules(a: ServicePortRules, b: ServicePortRules): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function baseChains(options: RulesOptions): string {
  const { podCidr } = options;
  const { ip } = keywordsOf(options);
  // The kernel lets no packet from ::1 leave its link, so such requests are refused; clients can use 127.0.0.1.
  const loopbackAside = ip === "ip6" ? "ip6 daddr != ::1 " : "";
  const look = `    ${ip} daddr . meta l4proto . th dport vmap @addresses
    ${ip} daddr != @balancer_ips ${loopbackAside}fib daddr type local meta l4proto . th dport vmap @node_ports
`;
  // Responses pass, because the host that holds the address also sends its own requests from it.
  const balanced = `${ip} daddr @balancer_ips ct direction original`;
  const refuseBalanced = `    ${balanced} meta l4proto tcp reject with tcp reset
    ${balanced} meta l4proto != { icmp, ipv6-icmp } reject
`;
  const refuseAll = `    ${ip} daddr @virtual_ips meta l4proto tcp reject with tcp reset
    ${ip} daddr @virtual_ips reject
`;
  return `  # Traffic from other hosts and from pods, before host ports are translated.
  chain arriving {
    type nat hook prerouting priority dstnat - 5; policy accept;
${look}  }
  # From the host itself.
  chain own {
    type nat hook output priority -105; policy accept;
${look}  }
  chain leaving {
    type nat hook postrouting priority srcnat - 5; policy accept;
    meta mark & ${MASQUERADE_MARK} == ${MASQUERADE_MARK} ${ip} daddr != ${podCidr} masquerade
  }
  # A virtual IP that is left here belongs to no service, or to a service without endpoints.
${ip === "ip6" ? refuseUnrouted(refuseAll) : ""}  chain refuse_forwarded {
    type filter hook forward priority filter - 5; policy accept;
${refuseAll}${refuseBalanced}  }
  chain refuse_own {
    type filter hook output priority filter - 5; policy accept;
${refuseAll}${refuseBalanced}  }
  # The host that announces a load balancer's address has it, but answers there for the service only, and to pings.
  chain refuse_arriving {
    type filter hook input priority filter - 5; policy accept;
${refuseBalanced}  }
`;
}

/**
 * Returns the chain that rejects unrouted virtual IPs. IPv6 virtual IPs are routed to the pods' bridge, because the
 * kernel doesn't route packets of others to its loopback. It would send pods a redirect before the packets reach the
 * forward hook, so an earlier hook rejects them.
 */
function refuseUnrouted(refuseAll: string): string {
  return `  chain refuse_unrouted {
    type filter hook prerouting priority dstnat + 5; policy accept;
${refuseAll}  }
`;
}

function additions(
  rule: ServicePortRules,
  before: ServicePortRules | undefined,
  options: RulesOptions,
): string[] {
  const table = tableOf(options);
  const lines: string[] = [];
  const known = new Set(before === undefined ? [] : affinitySets(before).map(({ name }) => name));
  for (const { name, definition } of affinitySets(rule)) {
    if (!known.has(name)) lines.push(`add set ${table} ${name} ${definition}`);
  }
  for (const { name, rules } of chainList(rule, options)) {
    lines.push(`add chain ${table} ${name}`, `flush chain ${table} ${name}`);
    for (const text of rules) lines.push(`add rule ${table} ${name} ${text}`);
  }
  return lines;
}

function removals(rule: ServicePortRules, after: ServicePortRules | undefined, table: string): string[] {
  const chains = new Set(after === undefined ? [] : chainNames(after));
  const sets = new Set(after === undefined ? [] : affinitySets(after).map(({ name }) => name));
  // The service's own chain comes first, because it jumps to the others.
  const goneChains = chainNames(rule)
    .filter((name) => !chains.has(name))
    .reverse();
  const goneSets = affinitySets(rule).filter(({ name }) => !sets.has(name));
  return [
    ...goneChains.map((name) => `flush chain ${table} ${name}`),
    ...goneChains.map((name) => `delete chain ${table} ${name}`),
    ...goneSets.map(({ name }) => `delete set ${table} ${name}`),
  ];
}

interface Chain {
  readonly name: string;
  readonly rules: readonly string[];
}

/** Returns the chains, each after the chains to which it jumps. */
function chainList(rule: ServicePortRules, { podCidr }: RulesOptions): Chain[] {
  const { id, protocol, endpoints, affinitySeconds, family } = rule;
  const { ip } = FAMILY_WORDS[family];
  const to = ({ address, port }: EndpointRule): string =>
    family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  // Responses to pods return by themselves; all others must pass through this host again.
  const mark = `${ip} saddr != ${podCidr} meta mark set meta mark or ${MASQUERADE_MARK}`;
  const random = `numgen random mod ${endpoints.length}`;
  if (affinitySeconds === 0) {
    const [only] = endpoints;
    const target =
      endpoints.length === 1 && only !== undefined
        ? to(only)
        : `${random} map { ${endpoints.map(({ address, port }, index) => `${index} : ${address} . ${port}`).join(", ")} }`;
    return [{ name: chainName(id), rules: [mark, `meta l4proto ${protocol} dnat ${ip} to ${target}`] }];
  }
  const own = endpoints.map((it): Chain => {
    const endpoint = it.id;
    const remember = `update @${setName(rule, endpoint)} { ${ip} saddr }`;
    return {
      name: endpointChain(id, endpoint),
      rules: [remember, `meta l4proto ${protocol} dnat ${ip} to ${to(it)}`],
    };
  });
  const known = endpoints.map(
    ({ id: endpoint }) => `${ip} saddr @${setName(rule, endpoint)} goto ${endpointChain(id, endpoint)}`,
  );
  const [first] = own;
  const choice =
    own.length === 1 && first !== undefined
      ? `goto ${first.name}`
      : `${random} vmap { ${own.map(({ name }, index) => `${index} : goto ${name}`).join(", ")} }`;
  return [...own, { name: chainName(id), rules: [mark, ...known, choice] }];
}

function chainsOf(rule: ServicePortRules, options: RulesOptions): string[] {
  return chainList(rule, options).map(
    ({ name, rules }) => `  chain ${name} {\n${rules.map((text) => `    ${text}\n`).join("")}  }\n`,
  );
}

function chainNames({ id, endpoints, affinitySeconds }: ServicePortRules): string[] {
  const own = affinitySeconds === 0 ? [] : endpoints.map((endpoint) => endpointChain(id, endpoint.id));
  return [...own, chainName(id)];
}

interface AffinitySet {
  readonly name: string;
  readonly definition: string;
  readonly declaration: string;
}

/**
 * Returns the sets of clients for each endpoint. Another timeout requires another set. The sets have no size: without
 * one the kernel accepts up to 65,535 clients, and with one it allocates a megabyte at once.
 */
function affinitySets(rule: ServicePortRules): AffinitySet[] {
  const { endpoints, affinitySeconds, family } = rule;
  if (affinitySeconds === 0) return [];
  return endpoints.map((endpoint) => {
    const name = setName(rule, endpoint.id);
    const text = `type ${FAMILY_WORDS[family].addressType}; flags dynamic,timeout; timeout ${affinitySeconds}s;`;
    return { name, definition: `{ ${text} }`, declaration: `set ${name} { ${text}\n  }` };
  });
}

function addressElements({ id, addresses }: ServicePortRules): string[] {
  return addresses.map((key) => `${key} : goto ${chainName(id)}`);
}

function nodePortElements({ id, nodePort }: ServicePortRules): string[] {
  return nodePort === undefined ? [] : [`${nodePort} : goto ${chainName(id)}`];
}

function nodePortKeys({ nodePort }: ServicePortRules): string[] {
  return nodePort === undefined ? [] : [nodePort];
}

function keywordsOf({ podCidr }: Pick<RulesOptions, "podCidr">): FamilyKeywords {
  return FAMILY_WORDS[familyOf(podCidr)];
}

/** Returns the table with its family, which is part of its identity. */
function tableOf(options: Pick<RulesOptions, "table" | "podCidr">): string {
  return `${keywordsOf(options).ip} ${options.table}`;
}

function elements(entries: readonly string[]): string {
  return entries.length === 0 ? "" : `\n    elements = { ${entries.join(", ")} }`;
}

function chainName(id: string): string {
  return `svc_${id}`;
}

function endpointChain(id: string, endpoint: string): string {
  return `ep_${id}_${endpoint}`;
}

function setName({ id, affinitySeconds }: ServicePortRules, endpoint: string): string {
  return `aff_${id}_${endpoint}_${affinitySeconds}`;
}
