import { isIPv6, SocketAddress } from "node:net";

export interface Ipv6Cidr {
  /** Normalised: host bits are zero. */
  readonly text: string;
  readonly first: bigint;
  readonly last: bigint;
  readonly prefix: number;
  /** The first address after that of the network itself, which the bridge has; as the kernel writes it. */
  readonly gateway: string;
}

const BITS = 128;

/** A network wide enough for pods; throws RangeError otherwise. */
export function parsePodCidr6(text: string): Ipv6Cidr {
  const cidr = parseIpv6Cidr(text);
  // The plugin that gives addresses away counts them in turn; smaller ones leave no room for replacements.
  if (cidr === undefined || cidr.prefix < 48 || cidr.prefix > 120) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv6 with a prefix of /48 to /120`);
  }
  // Pods leave the host with its own address, which needs theirs to mean nothing to anyone else.
  if (!/^f[cd]/.test(cidr.text)) {
    throw new RangeError(
      `pod CIDR ${JSON.stringify(text)} must be of the private range fc00::/7, as fd64::/64 is`,
    );
  }
  return cidr;
}

export function parseIpv6Cidr(text: string): Ipv6Cidr | undefined {
  const [address = "", prefixText = String(BITS), ...rest] = text.split("/");
  if (!isIPv6(address) || address.includes("%") || !/^\d{1,3}$/.test(prefixText) || rest.length > 0)
    return undefined;
  const prefix = Number(prefixText);
  if (prefix > BITS) return undefined;
  const size = 1n << BigInt(BITS - prefix);
  const first = (toNumber(address) / size) * size;
  return {
    text: `${toAddress(first)}/${prefix}`,
    first,
    last: first + size - 1n,
    prefix,
    gateway: toAddress(first + 1n),
  };
}

export function contains6(cidr: Ipv6Cidr, address: string): boolean {
  const host = parseIpv6Cidr(address);
  return host?.prefix === BITS && host.first >= cidr.first && host.first <= cidr.last;
}

/** Whether the two share an address. */
export function overlaps6(a: Ipv6Cidr, b: Ipv6Cidr): boolean {
  return a.first <= b.last && b.first <= a.last;
}

/** One text for all ways to write an address, as the kernel and its tools have it. */
export function normalIpv6(address: string): string {
  return new SocketAddress({ address, family: "ipv6" }).address;
}

function toNumber(address: string): bigint {
  const [head = [], tail] = address
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":").flatMap(groups)));
  const after = tail ?? [];
  const zeros = new Array<number>(8 - head.length - after.length).fill(0);
  return [...head, ...zeros, ...after].reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** The last one may be written as IPv4. */
function groups(text: string): number[] {
  if (!text.includes(".")) return [Number.parseInt(text, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}

function toAddress(value: bigint): string {
  const parts = [112, 96, 80, 64, 48, 32, 16, 0].map((shift) =>
    ((value >> BigInt(shift)) & 0xffffn).toString(16),
  );
  return normalIpv6(parts.join(":"));
}
