import { isIPv4, isIPv6 } from "node:net";
import type { TcpAddress } from "@forage/proto/net";

/** An IP address and port in Linkerd's form; undefined if the host isn't an IP address. */
export function toTcpAddress(host: string, port: number): TcpAddress | undefined {
  if (isIPv4(host)) {
    const value = host.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    return { ip: { ip: { $case: "ipv4", value } }, port };
  }
  if (!isIPv6(host)) return undefined;
  const bytes = ipv6Hextets(host);
  const half = (from: number): bigint =>
    bytes.slice(from, from + 4).reduce((sum, h) => (sum << 16n) | BigInt(h), 0n);
  return { ip: { ip: { $case: "ipv6", value: { first: half(0), last: half(4) } } }, port };
}

function ipv6Hextets(host: string): number[] {
  const [head = "", tail] = host.split("::");
  const parse = (part: string): number[] => (part === "" ? [] : part.split(":").flatMap(parseGroup));
  const left = parse(head);
  const right = tail === undefined ? [] : parse(tail);
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/** The last group may be written as IPv4. */
function parseGroup(group: string): number[] {
  if (!group.includes(".")) return [Number.parseInt(group, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
