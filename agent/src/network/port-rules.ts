import { familyOf } from "@forage/common/ip";
import { FAMILY_WORDS } from "./family-words.ts";
import type { InstanceNames } from "./instance-names.ts";
import type { PortMapping } from "./network.ts";

/** The shape of the table of one address family. */
export interface PortTableShape {
  readonly names: InstanceNames;
  /** The CIDR of pods on every host. */
  readonly podCidr: string;
}

/**
 * Elements of the kernel's maps, such as `tcp . 20000` to `10.64.0.2 . 80`. A port of a single host address has the key
 * `192.0.2.1 . tcp . 20000`.
 */
export type PortElements = ReadonlyMap<string, string>;

/** The map of ports of all host addresses. */
export const MAP = "host_ports";
/** The map of ports of single host addresses, which takes precedence. */
export const ADDRESS_MAP = "host_address_ports";
const MAPS = [MAP, ADDRESS_MAP] as const;
type MapName = (typeof MAPS)[number];

/** Returns the whole table, which replaces the former one in one transaction. */
export function tableText({ names, podCidr: pods }: PortTableShape, elements: PortElements): string {
  const { table, bridge } = names;
  const { ip, addressType, loopback } = FAMILY_WORDS[familyOf(pods)];
  // The kernel lets no packet from ::1 leave its link, so such requests are refused; clients can use 127.0.0.1.
  const asked = ip === "ip6" ? "ip6 daddr != ::1 " : "";
  const local = `${asked}fib daddr type local meta l4proto { tcp, udp, sctp } dnat ${ip} to`;
  const translate = `${local} ${ip} daddr . meta l4proto . th dport map @${ADDRESS_MAP}
    ${local} meta l4proto . th dport map @${MAP}`;
  return `add table ${ip} ${table}
delete table ${ip} ${table}
table ${ip} ${table} {
  map ${MAP} {
    type inet_proto . inet_service : ${addressType} . inet_service${elementsText(elements, MAP)}
  }
  map ${ADDRESS_MAP} {
    type ${addressType} . inet_proto . inet_service : ${addressType} . inet_service${elementsText(elements, ADDRESS_MAP)}
  }
  # The bridge accepts loopback addresses for the sake of answers to the host itself, which still have the
  # bridge's address when they pass here. Anything else that has them is a pod reaching for the host's loopback.
  chain guard {
    type filter hook prerouting priority raw; policy accept;
    iifname "${bridge}" ${ip} saddr ${loopback} drop
    iifname "${bridge}" ${ip} daddr ${loopback} drop
  }
  # From other hosts and from pods.
  chain arriving {
    type nat hook prerouting priority dstnat; policy accept;
    ${translate}
  }
  # From the host itself, by any of its addresses.
  chain own {
    type nat hook output priority -100; policy accept;
    ${translate}
  }
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    # Pod networks are the same on every host, so beyond the host a pod goes by the host's address.
    ${ip} saddr ${pods} ${ip} daddr != ${pods} oifname != "${bridge}" masquerade
    # A pod can't answer to the host's loopback.
    ${ip} saddr ${loopback} oifname "${bridge}" masquerade
    # Between pods, or from a pod to itself, the answer must come back this way to be translated.
    ${ip} saddr ${pods} ${ip} daddr ${pods} ct status dnat masquerade
  }
}
`;
}

/** Returns the transaction that changes one set of elements into another. Empty if they are equal. */
export function deltaText(shape: PortTableShape, from: PortElements, to: PortElements): string {
  const removed = [...from].filter(([key, target]) => to.get(key) !== target).map(([key]) => key);
  const added = [...to]
    .filter(([key, target]) => from.get(key) !== target)
    .map(([key, target]) => `${key} : ${target}`);
  return MAPS.map((map) => change("delete", shape, map, removed))
    .concat(MAPS.map((map) => change("add", shape, map, added)))
    .join("");
}

/** Returns UDP host ports whose target differs. The kernel still sends packets of known peers to the former target. */
export function changedUdpPorts(from: PortElements, to: PortElements): number[] {
  const keys = new Set([...from.keys(), ...to.keys()]);
  const changed = [...keys].filter((key) => from.get(key) !== to.get(key));
  return changed.flatMap((key) => {
    const port = /\budp \. (\d+)$/.exec(key)?.[1];
    return port === undefined ? [] : [Number(port)];
  });
}

/** Returns the elements for one address of a pod. Excludes ports of a host address in the other family. */
export function portElements(
  address: string,
  mappings: readonly PortMapping[],
): [key: string, target: string][] {
  const family = familyOf(address);
  const own = mappings.filter(({ hostIp }) => hostIp === undefined || familyOf(hostIp) === family);
  return own.map(({ protocol, hostPort, containerPort, hostIp }) => [
    `${hostIp === undefined ? "" : `${hostIp} . `}${protocol.toLowerCase()} . ${hostPort}`,
    `${address} . ${containerPort}`,
  ]);
}

function elementsText(elements: PortElements, map: MapName): string {
  const own = [...elements].filter(([key]) => mapOf(key) === map);
  if (own.length === 0) return "";
  return `\n    elements = { ${own.map(([key, target]) => `${key} : ${target}`).join(", ")} }`;
}

function change(
  verb: "add" | "delete",
  shape: PortTableShape,
  map: MapName,
  elements: readonly string[],
): string {
  const { ip } = FAMILY_WORDS[familyOf(shape.podCidr)];
  const own = elements.filter((element) => mapOf(element) === map);
  return own.length === 0 ? "" : `${verb} element ${ip} ${shape.names.table} ${map} { ${own.join(", ")} }\n`;
}

/** Returns the map that an element, or its key, belongs to. */
function mapOf(element: string): MapName {
  return /^(tcp|udp|sctp) /.test(element) ? MAP : ADDRESS_MAP;
}
