import { isIPv4 } from "node:net";

/** IPv4 addresses that can be given away. */
export interface IpRange {
  readonly text: string;
  readonly size: number;
  /** From 0 up to `size`. */
  at(index: number): string;
  has(address: string): boolean;
}

/** A CIDR, without its first and last address. Undefined: it is none. */
export function parseIpRange(text: string): IpRange | undefined {
  const bounds = boundsOfCidr(text);
  if (bounds === undefined) return undefined;
  const { first, last } = bounds;
  return {
    text,
    size: last - first + 1,
    at: (index) => toAddress(first + index),
    has: (address) => isIPv4(address) && toNumber(address) >= first && toNumber(address) <= last,
  };
}

interface Bounds {
  readonly first: number;
  readonly last: number;
}

function boundsOfCidr(text: string): Bounds | undefined {
  const [address = "", prefixText = "32", ...rest] = text.split("/");
  if (!isIPv4(address) || !/^\d{1,2}$/.test(prefixText) || rest.length > 0) return undefined;
  const prefix = Number(prefixText);
  if (prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  const first = Math.floor(toNumber(address) / size) * size;
  // The network's own address and that for all are of no use.
  return size <= 2 ? { first, last: first + size - 1 } : { first: first + 1, last: first + size - 2 };
}

function toNumber(address: string): number {
  return address.split(".").reduce((value, part) => value * 256 + Number(part), 0);
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
