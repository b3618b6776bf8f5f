import { isIPv4, isIPv6 } from "node:net";
import type { TcpAddress } from "@forage/proto/net";

/**
 * Converts an IP address and port to Linkerd's form; undefined if the host is not an IP address.
 */
export function toTcpAddress(host: string, port: number): TcpAddress | undefined {
  if (isIPv4(host)) {
    const value = host.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    return { ip: { ip: { $case: "ipv4", value } }, port };
  }
  if (!isIPv6(host) || host.includes("%")) return undefined;
  const bytes = ipv6Hextets(host);
  const half = (from: number): bigint =>
    bytes.slice(from, from + 4).reduce((sum, h) => (sum << 16n) | BigInt(h), 0n);
  return { ip: { ip: { $case: "ipv6", value: { first: half(0), last: half(4) } } }, port };
}

/**
 * Returns the same text for all spellings of an IP address, including IPv4 addresses within IPv6;
 * undefined for other texts.
 */
export function addressKey(host: string): string | undefined {
  const ip = toTcpAddress(host, 0)?.ip?.ip;
  if (ip === undefined) return undefined;
  if (ip.$case === "ipv4") return `4/${ip.value}`;
  const { first, last } = ip.value;
  return first === 0n && last >> 32n === 0xffffn ? `4/${last & 0xffffffffn}` : `6/${first}/${last}`;
}

function ipv6Hextets(host: string): number[] {
  const [head = "", tail] = host.split("::");
  const parse = (part: string): number[] => (part === "" ? [] : part.split(":").flatMap(parseGroup));
  const left = parse(head);
  const right = tail === undefined ? [] : parse(tail);
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** Parses a group. The last group may be an IPv4 address. */
function parseGroup(group: string): number[] {
  if (!group.includes(".")) return [Number.parseInt(group, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
