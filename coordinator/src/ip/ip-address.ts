import { isIPv4, isIPv6 } from "node:net";

export type IpFamily = 4 | 6;

/** An address as a number, with which can be counted. */
export interface IpNumber {
  readonly family: IpFamily;
  readonly value: bigint;
}

export const addressBits = { 4: 32, 6: 128 } as const;

/** Undefined: it is none, or an IPv6 address with an interface or an IPv4 address in it. */
export function parseIp(text: string): IpNumber | undefined {
  if (isIPv4(text)) return { family: 4, value: fromParts(text.split("."), 10, 8n) };
  if (!isIPv6(text) || /[.%]/.test(text)) return undefined;
  const [head = "", tail] = text.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const after = tail ?? [];
  const zeros = Array.from({ length: 8 - head.length - after.length }, () => "0");
  return { family: 6, value: fromParts([...head, ...zeros, ...after], 16, 16n) };
}

/** As the kernel and its tools write it: for IPv6 the longest run of zeros left out. */
export function formatIp({ family, value }: IpNumber): string {
  if (family === 4) return toParts(value, 4, 8n).join(".");
  const groups = toParts(value, 8, 16n);
  const text = groups.map((group) => group.toString(16));
  const { at, length } = longestZeros(groups);
  if (length < 2) return text.join(":");
  return `${text.slice(0, at).join(":")}::${text.slice(at + length).join(":")}`;
}

export function familyOf(address: string): IpFamily {
  return address.includes(":") ? 6 : 4;
}

/** One text for all ways to write an address, those of IPv4 within IPv6 included; what is none stays as it is. */
export function normalIp(text: string): string {
  const inner = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ?? text;
  const ip = parseIp(inner);
  if (ip === undefined) return text;
  const { family, value } = ip;
  return family === 6 && value >> 32n === 0xffffn
    ? formatIp({ family: 4, value: value & 0xffff_ffffn })
    : formatIp(ip);
}

function fromParts(parts: readonly string[], base: number, bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) | BigInt(Number.parseInt(part, base)), 0n);
}

function toParts(value: bigint, count: number, bits: bigint): number[] {
  return Array.from({ length: count }, (_, index) =>
    Number((value >> (bits * BigInt(count - 1 - index))) & ((1n << bits) - 1n)),
  );
}

/** The first of the longest ones. */
function longestZeros(groups: readonly number[]): { readonly at: number; readonly length: number } {
  let best = { at: 0, length: 0 };
  let length = 0;
  for (const [index, group] of groups.entries()) {
    length = group === 0 ? length + 1 : 0;
    if (length > best.length) best = { at: index - length + 1, length };
  }
  return best;
}
