import type { Field } from "./hpack/static-table.ts";

/** The header fields of a request. */
export interface RequestHead {
  readonly method: string;
  readonly scheme: string;
  readonly path: string;
  readonly authority: string;
  /** The fields without pseudo-header fields. Values of repeated fields are joined by commas. */
  readonly fields: ReadonlyMap<string, string>;
}

const PSEUDO_FIELDS: ReadonlySet<string> = new Set([":method", ":scheme", ":path", ":authority"]);
/** Fields of HTTP/1.1 connections, which HTTP/2 forbids. */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const BAD_VALUE = /[\0\r\n]/;

/**
 * Returns the head of a request; undefined if the fields are malformed (RFC 9113, sections 8.2 and
 * 8.3).
 */
export function readRequestHead(list: readonly Field[]): RequestHead | undefined {
  const pseudo = new Map<string, string>();
  const fields = new Map<string, string>();
  for (const [name, value] of list) {
    if (name.startsWith(":")) {
      if (!PSEUDO_FIELDS.has(name) || pseudo.has(name) || fields.size > 0 || BAD_VALUE.test(value))
        return undefined;
      pseudo.set(name, value);
    } else {
      if (!isWellFormed(name, value)) return undefined;
      const before = fields.get(name);
      fields.set(name, before === undefined ? value : `${before},${value}`);
    }
  }
  const method = pseudo.get(":method") ?? "";
  const scheme = pseudo.get(":scheme") ?? "";
  const path = pseudo.get(":path") ?? "";
  if (method === "" || (method !== "CONNECT" && (scheme === "" || path === ""))) return undefined;
  return { method, scheme, path, authority: pseudo.get(":authority") ?? "", fields };
}

/** Reports whether the fields are valid trailers. */
export function areTrailers(list: readonly Field[]): boolean {
  return list.every(([name, value]) => isWellFormed(name, value));
}

/**
 * Returns the announced length of the body; undefined if there is none, and NaN if it is not a
 * number.
 */
export function contentLengthOf({ fields }: RequestHead): number | undefined {
  const text = fields.get("content-length");
  if (text === undefined) return undefined;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

function isWellFormed(name: string, value: string): boolean {
  if (!NAME.test(name) || BAD_VALUE.test(value) || CONNECTION_FIELDS.has(name)) return false;
  return name !== "te" || value === "trailers";
}
