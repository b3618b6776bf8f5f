import { isIPv4, isIPv6 } from "node:net";
import type { IpFamily } from "@forage/common/ip";

/** The keywords of nftables and conntrack for an address family. */
export interface FamilyKeywords {
  /** The family of tables, and of matches on addresses. */
  readonly ip: "ip" | "ip6";
  readonly addressType: "ipv4_addr" | "ipv6_addr";
  readonly loopback: string;
  readonly conntrack: "ipv4" | "ipv6";
}

export const FAMILY_WORDS: Readonly<Record<IpFamily, FamilyKeywords>> = {
  4: { ip: "ip", addressType: "ipv4_addr", loopback: "127.0.0.0/8", conntrack: "ipv4" },
  6: { ip: "ip6", addressType: "ipv6_addr", loopback: "::1", conntrack: "ipv6" },
};

export function isOfFamily(address: string, family: IpFamily): boolean {
  return family === 4 ? isIPv4(address) : isIPv6(address) && !address.includes("%");
}
