import type { networkInterfaces } from "node:os";
import { ADDRESS_BITS, containsIp, parseCidr } from "@forage/common/ip";
import type { Link } from "../network/host-links.ts";

/** A subnet in which the host has an address. */
export interface ConnectedNetwork {
  readonly interface: string;
  /** The normalised subnet, such as `192.0.2.0/24`. */
  readonly cidr: string;
  readonly prefix: number;
  has(address: string): boolean;
}

export type AddressedLink = Pick<Link, "ifname" | "addr_info">;

/** Matches the agents' bridges, whose subnet is the same on every host. */
const PODS_BRIDGE = /^fg-/;

/** Returns the subnets of the host's interfaces, without loopback, pods' bridges and link-local subnets. Pure. */
export function connectedNetworks(links: readonly AddressedLink[]): ConnectedNetwork[] {
  return links
    .filter(({ ifname }) => ifname !== "lo" && !PODS_BRIDGE.test(ifname))
    .flatMap(({ ifname, addr_info }) =>
      addr_info.flatMap(({ local, prefixlen }) => networkOf(ifname, `${local}/${prefixlen}`) ?? []),
    );
}

/** Returns the interface whose network contains the address, or undefined if there is none. Pure. */
export function interfaceFor(address: string, links: readonly AddressedLink[]): string | undefined {
  const networks = connectedNetworks(links).filter((network) => network.has(address));
  return networks.sort((a, b) => b.prefix - a.prefix)[0]?.interface;
}

/** Converts Node's list of the host's interfaces to the form of `ip`, without starting a process. */
export function linksOf(interfaces: ReturnType<typeof networkInterfaces>): AddressedLink[] {
  return Object.entries(interfaces).map(([ifname, addresses = []]) => ({
    ifname,
    addr_info: addresses.flatMap(({ address, cidr, family }) => {
      const prefixlen = Number(cidr?.split("/")[1] ?? Number.NaN);
      return Number.isNaN(prefixlen)
        ? []
        : [{ family: family === "IPv4" ? "inet" : "inet6", local: address, prefixlen }];
    }),
  }));
}

/** Returns the subnet of an address. Single addresses, such as announced ones, have none. */
function networkOf(name: string, text: string): ConnectedNetwork | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || cidr.prefix === ADDRESS_BITS[cidr.family]) return undefined;
  const isOfLink = cidr.family === 4 ? cidr.text.startsWith("169.254.") : /^fe[89ab]/.test(cidr.text);
  if (isOfLink) return undefined;
  return {
    interface: name,
    cidr: cidr.text,
    prefix: cidr.prefix,
    has: (address) => containsIp(cidr, address),
  };
}
