import { isIP } from "node:net";
import type { Duration } from "@forage/proto/google/protobuf/duration";

/** The parsed value of an annotation, or a message that explains why it is invalid. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

export function parseInteger(text: string, min: number, max: number): Parsed<number> {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max
    ? { value }
    : { problem: `must be a whole number from ${min} to ${max}` };
}

export function parseDecimal(text: string, min: number, max: number): Parsed<number> {
  const value = /^\d{1,10}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? { value } : { problem: `must be a number from ${min} to ${max}` };
}

export function parseBoolean(text: string): Parsed<boolean> {
  if (text === "true" || text === "false") return { value: text === "true" };
  return { problem: 'must be "true" or "false"' };
}

export function parseChoice<T extends string>(text: string, choices: readonly T[]): Parsed<T> {
  const value = choices.find((choice) => choice === text);
  return value === undefined ? { problem: `must be one of ${choices.join(", ")}` } : { value };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Parses a duration such as `250ms`, `10s`, `1m`. */
export function parseDuration(text: string, minMs: number, maxMs: number): Parsed<Duration> {
  const [, digits = "", unit = ""] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit] ?? Number.NaN);
  if (!(ms >= minMs && ms <= maxMs)) {
    return { problem: `must be a duration such as 250ms or 10s, from ${minMs} ms to ${maxMs} ms` };
  }
  return { value: { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 } };
}

const DNS_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/;

export function parseDnsName(text: string): Parsed<string> {
  return DNS_NAME.test(text) && isIP(text) === 0 ? { value: text } : { problem: "must be a DNS name" };
}

/** Parses an authority: `host` or `host:port`. */
export function parseAuthority(text: string): Parsed<string> {
  const [, host = "", digits] = /^([^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? 1 : Number(digits);
  const fits = port >= 1 && port <= 65_535 && (DNS_NAME.test(host.toLowerCase()) || isIP(host) === 4);
  return fits ? { value: text } : { problem: "must be HOST or HOST:PORT" };
}

const SPIFFE = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/[A-Za-z0-9._-]{1,255}){1,16}$/;

export function parseSpiffeId(text: string): Parsed<string> {
  return SPIFFE.test(text) ? { value: text } : { problem: "must be spiffe://TRUST-DOMAIN/PATH" };
}
