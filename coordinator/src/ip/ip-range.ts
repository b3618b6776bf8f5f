import { ADDRESS_BITS, formatIp, type IpFamily, parseIp } from "@forage/common/ip";

/** A range of assignable addresses of one family. */
export interface IpRange {
  readonly text: string;
  readonly family: IpFamily;
  /** The number of addresses. In very large ranges, only a fixed number is used. */
  readonly size: number;
  /** Returns the address at an index from 0 to `size` - 1, in the kernel's notation. */
  at(index: number): string;
  has(address: string): boolean;
}

/** The limit of a range's size: more than could ever be assigned, and exact as a number. */
const MAX_SIZE = 2n ** 48n;

/**
 * Parses a CIDR, without its first and last address, or `FIRST-LAST`, with both. Returns undefined
 * for other texts.
 */
export function parseIpRange(text: string): IpRange | undefined {
  const bounds = text.includes("-") ? boundsOfPair(text) : boundsOfCidr(text);
  if (bounds === undefined || bounds.last < bounds.first) return undefined;
  const { family, first, last } = bounds;
  const size = last - first + 1n;
  return {
    text,
    family,
    size: Number(size < MAX_SIZE ? size : MAX_SIZE),
    at: (index) => formatIp({ family, value: first + BigInt(index) }),
    has: (address) => {
      const ip = parseIp(address);
      return ip?.family === family && ip.value >= first && ip.value <= last;
    },
  };
}

interface Bounds {
  readonly family: IpFamily;
  readonly first: bigint;
  readonly last: bigint;
}

function boundsOfPair(text: string): Bounds | undefined {
  const [first, last, ...rest] = text.split("-").map((part) => parseIp(part.trim()));
  if (first === undefined || last?.family !== first.family || rest.length > 0) return undefined;
  return { family: first.family, first: first.value, last: last.value };
}

function boundsOfCidr(text: string): Bounds | undefined {
  const [address = "", prefixText, ...rest] = text.split("/");
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0) return undefined;
  const { family } = ip;
  const bits = ADDRESS_BITS[family];
  const prefix = prefixText === undefined ? bits : Number(prefixText);
  if (!/^\d{1,3}$/.test(prefixText ?? "0") || prefix > bits) return undefined;
  const size = 1n << BigInt(bits - prefix);
  const first = (ip.value / size) * size;
  const last = first + size - 1n;
  // The network address and the broadcast address can't be assigned.
  return size <= 2n ? { family, first, last } : { family, first: first + 1n, last: last - 1n };
}
