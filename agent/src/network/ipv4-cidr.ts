import { isIPv4 } from "node:net";

export interface Ipv4Cidr {
  /** Normalised: host bits are zero. */
  readonly text: string;
  readonly first: number;
  readonly last: number;
  readonly prefix: number;
  /** The first address, which the bridge has. */
  readonly gateway: string;
}

/** A network wide enough for pods; throws RangeError otherwise. */
export function parsePodCidr(text: string): Ipv4Cidr {
  const cidr = parseIpv4Cidr(text);
  // Smaller ones leave no room for a bridge, a pod and its replacement.
  if (cidr === undefined || cidr.prefix < 8 || cidr.prefix > 28) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv4 with a prefix of /8 to /28`);
  }
  return cidr;
}

export function parseIpv4Cidr(text: string): Ipv4Cidr | undefined {
  const [address = "", prefixText = "32", ...rest] = text.split("/");
  if (!isIPv4(address) || !/^\d{1,2}$/.test(prefixText) || rest.length > 0) return undefined;
  const prefix = Number(prefixText);
  if (prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  const first = Math.floor(toNumber(address) / size) * size;
  return {
    text: `${toAddress(first)}/${prefix}`,
    first,
    last: first + size - 1,
    prefix,
    gateway: toAddress(first + 1),
  };
}

export function contains(cidr: Ipv4Cidr, address: string): boolean {
  if (!isIPv4(address)) return false;
  const value = toNumber(address);
  return value >= cidr.first && value <= cidr.last;
}

/** Whether the two share an address. */
export function overlaps(a: Ipv4Cidr, b: Ipv4Cidr): boolean {
  return a.first <= b.last && b.first <= a.last;
}

function toNumber(address: string): number {
  return address.split(".").reduce((value, part) => value * 256 + Number(part), 0);
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
