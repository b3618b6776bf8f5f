import type { IncomingMessage } from "node:http";
import { TOKEN_HEADER } from "./authorize-visit.ts";
import { withoutOwnerCookies } from "./owner-cookie.ts";

/** Headers for one connection only (RFC 9110, section 7.6.1), and those that Node writes by itself. */
const HOP_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  "http2-settings",
]);
const FORWARDED = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

export interface Arrival {
  /** The address of the peer. */
  readonly address: string;
  readonly proto: "http" | "https";
}

/** Returns the headers for the workspace: without the owner token, without those of one connection, with those of a proxy. */
export function requestHeaders(request: IncomingMessage, { address, proto }: Arrival): string[] {
  const dropped = new Set([...HOP_HEADERS, ...connectionTokens(request), ...FORWARDED, TOKEN_HEADER]);
  const headers: string[] = [];
  for (const [name, value] of rawPairs(request)) {
    const lower = name.toLowerCase();
    if (dropped.has(lower)) continue;
    const kept = lower === "cookie" ? withoutOwnerCookies(value) : value;
    if (kept !== undefined) headers.push(name, kept);
  }
  const before = textOf(request.headers["x-forwarded-for"]);
  headers.push("X-Forwarded-For", before === undefined ? address : `${before}, ${address}`);
  headers.push("X-Forwarded-Host", textOf(request.headers["x-forwarded-host"]) ?? request.headers.host ?? "");
  headers.push("X-Forwarded-Proto", textOf(request.headers["x-forwarded-proto"]) ?? proto);
  return headers;
}

/** Returns the headers for the visitor. */
export function responseHeaders(response: IncomingMessage): string[] {
  const dropped = new Set([...HOP_HEADERS, ...connectionTokens(response)]);
  return rawPairs(response).flatMap(([name, value]) =>
    dropped.has(name.toLowerCase()) ? [] : [name, value],
  );
}

/** The headers that the message's Connection header names. */
function connectionTokens({ headers }: IncomingMessage): string[] {
  return (headers.connection ?? "")
    .split(",")
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "");
}

function rawPairs({ rawHeaders }: IncomingMessage): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    pairs.push([rawHeaders[index] ?? "", rawHeaders[index + 1] ?? ""]);
  return pairs;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
