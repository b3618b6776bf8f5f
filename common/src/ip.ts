import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

export type IpFamily = 4 | 6;

/** An address as a number, for calculations. */
export interface IpNumber {
  readonly family: IpFamily;
  readonly value: bigint;
}

/** A subnet, or one address with the longest prefix. */
export interface Cidr {
  /** The normalised text: host bits are zero, and IPv6 has its shortest form (RFC 5952). */
  readonly text: string;
  readonly family: IpFamily;
  readonly prefix: number;
  readonly first: bigint;
  readonly last: bigint;
}

export const ADDRESS_BITS: Readonly<Record<IpFamily, number>> = { 4: 32, 6: 128 };

/**
 * Parses an address. Returns undefined for any other text, for an IPv6 address with an interface, such as
 * `fe80::1%eth0`, and for one that contains an IPv4 address, such as `::ffff:192.0.2.1`. IPv4 must have four decimal
 * numbers; shorter, octal and hexadecimal forms are rejected.
 */
export function parseIp(text: string): IpNumber | undefined {
  if (isIPv4(text)) return { family: 4, value: toNumber(ipaddr.IPv4.parse(text).toByteArray()) };
  if (!isIPv6(text) || /[.%]/.test(text)) return undefined;
  return { family: 6, value: toNumber(ipaddr.IPv6.parse(text).toByteArray()) };
}

/** Formats an address as the kernel does: IPv6 with its longest run of zeros shortened. */
export function formatIp({ family, value }: IpNumber): string {
  return ipaddr.fromByteArray(toBytes(value, ADDRESS_BITS[family] / 8)).toString();
}

/** Returns the address family of an address or CIDR. */
export function familyOf(text: string): IpFamily {
  return text.includes(":") ? 6 : 4;
}

/**
 * Returns the same text for all notations of an address. An IPv4 address within IPv6 becomes IPv4. Returns text that is
 * not an address unchanged.
 */
export function normalIp(text: string): string {
  const ip = parseIp(/^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ?? text);
  if (ip === undefined) return text;
  const { family, value } = ip;
  return family === 6 && value >> 32n === 0xffffn
    ? formatIp({ family: 4, value: value & 0xffff_ffffn })
    : formatIp(ip);
}

/** Parses `ADDRESS/PREFIX`, or a single address. Returns undefined for any other text. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = "", prefixText, ...rest] = text.split("/");
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0) return undefined;
  const { family } = ip;
  const bits = ADDRESS_BITS[family];
  if (prefixText !== undefined && !/^\d{1,3}$/.test(prefixText)) return undefined;
  const prefix = Number(prefixText ?? bits);
  if (prefix > bits) return undefined;
  const size = 1n << BigInt(bits - prefix);
  const first = (ip.value / size) * size;
  return {
    text: `${formatIp({ family, value: first })}/${prefix}`,
    family,
    prefix,
    first,
    last: first + size - 1n,
  };
}

/** Reports whether the text is an address in the subnet. */
export function containsIp(cidr: Cidr, address: string): boolean {
  const ip = parseIp(address);
  return ip?.family === cidr.family && ip.value >= cidr.first && ip.value <= cidr.last;
}

/** Reports whether two subnets share an address. */
export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.family === b.family && a.first <= b.last && b.first <= a.last;
}

function toNumber(bytes: readonly number[]): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
}

function toBytes(value: bigint, length: number): number[] {
  return [...Buffer.from(value.toString(16).padStart(length * 2, "0"), "hex")];
}
