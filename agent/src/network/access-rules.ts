import type { IpFamily } from "@forage/common/ip";
import { FAMILY_WORDS } from "./family-words.ts";
import type { InstanceNames } from "./instance-names.ts";

/** A port of the host that is open to pods. */
export interface OpenPort {
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}

/**
 * Limits which destinations other than pods can be reached from pods with their own network. Pods on the host's network
 * count as the host.
 */
export interface PodAccess {
  /** Whether pods can reach the addresses at which clouds provide a machine's credentials and user data. */
  readonly metadata: boolean;
  /** The open ports of the host's own addresses. Undefined: all ports. */
  readonly host: HostAccess | undefined;
}

export interface HostAccess {
  /** Open ports at the bridge's address, on which the agent itself listens. */
  readonly onBridge: readonly OpenPort[];
  /** Ports that are open at all addresses of the host. */
  readonly everywhere: readonly OpenPort[];
}

export interface AccessTableShape {
  readonly names: InstanceNames;
  readonly access: PodAccess;
  /** The host's addresses on the bridge, of both families. */
  readonly gateways: readonly string[];
}

/**
 * The addresses of clouds' metadata services. AWS, Google, Azure, OpenStack, Oracle, DigitalOcean and Hetzner share the
 * first. The others are AWS' credentials for tasks and pods, Azure's host agent, Alibaba, and Oracle's older address.
 */
export const METADATA_ADDRESSES: Readonly<Record<IpFamily, readonly string[]>> = {
  4: [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
  ],
  6: ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe"],
};

/** Returns the whole table of one family, which replaces the former one in one transaction. */
export function accessTableText({ names, access, gateways }: AccessTableShape, family: IpFamily): string {
  const { ip, addressType } = FAMILY_WORDS[family];
  const table = `${ip} ${names.accessTable}`;
  const metadata = access.metadata ? [] : metadataRules(family);
  const own = gateways.filter((it) => it.includes(":") === (family === 6));
  return `add table ${table}
delete table ${table}
table ${table} {
  set metadata {
    type ${addressType}
    elements = { ${METADATA_ADDRESSES[family].join(", ")} }
  }
  # From pods to other machines.
  chain beyond {
    type filter hook forward priority filter - 5; policy accept;
    iifname != "${names.bridge}" accept
${lines(metadata)}  }
  # From pods to programs of this host.
  chain host {
    type filter hook input priority filter - 5; policy accept;
    iifname != "${names.bridge}" accept
${lines(metadata)}${lines(access.host === undefined ? [] : hostRules(access.host, own, family))}  }
}
`;
}

/**
 * Returns the rules for metadata addresses. DNS stays allowed, because some clouds have their name servers at the same
 * address.
 */
function metadataRules(family: IpFamily): readonly string[] {
  const { ip } = FAMILY_WORDS[family];
  return [`${ip} daddr @metadata meta l4proto { tcp, udp } th dport != 53 ${refusal(family)}`];
}

function hostRules(
  { onBridge, everywhere }: HostAccess,
  gateways: readonly string[],
  family: IpFamily,
): readonly string[] {
  const { ip } = FAMILY_WORDS[family];
  return [
    // These packets answer the host's own probes and forwarded ports.
    "ct state established,related accept",
    `meta l4proto ${family === 4 ? "icmp" : "ipv6-icmp"} accept`,
    // Services, node ports and host ports may lead to a pod on the host's network.
    "ct status dnat accept",
    ...gateways.flatMap((gateway) => openings(onBridge, `${ip} daddr ${gateway} `)),
    ...openings(everywhere, ""),
    refusal(family),
  ];
}

function openings(ports: readonly OpenPort[], match: string): readonly string[] {
  return ports.map(({ protocol, port }) => `${match}${protocol} dport ${port} accept`);
}

/** Returns the verdict: rejecting with a response makes the client fail at once. */
function refusal(family: IpFamily): string {
  return family === 4 ? "reject with icmp type admin-prohibited" : "reject with icmpv6 type admin-prohibited";
}

function lines(rules: readonly string[]): string {
  return rules.map((it) => `    ${it}\n`).join("");
}
