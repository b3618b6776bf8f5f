import type { IncomingMessage } from "node:http";

/** Headers that apply to one connection only (RFC 9110, section 7.6.1), and headers that Node writes itself. */
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

export interface RequestOrigin {
  /** The address of the peer. */
  readonly address: string;
  readonly proto: "http" | "https";
}

/** The headers and cookies that belong to the proxy and are not forwarded. */
export interface ForwardRules {
  /** The target in messages, such as "the workspace". */
  readonly target: string;
  /** The names of request headers to remove, in lower case. */
  readonly hiddenHeaders: readonly string[];
  /** Returns the Cookie header without the proxy's own cookies. Undefined: nothing is left. */
  readonly withoutOwnCookies: (header: string) => string | undefined;
  /** Reports whether a Set-Cookie header of the target would replace a cookie of the proxy. */
  readonly setsOwnCookie: (header: string) => boolean;
}

/**
 * Returns the request headers for the target: without the proxy's own and hop-by-hop headers, with the X-Forwarded headers.
 */
export function requestHeaders(
  request: IncomingMessage,
  { address, proto }: RequestOrigin,
  { hiddenHeaders, withoutOwnCookies }: ForwardRules,
): string[] {
  const dropped = new Set([...HOP_HEADERS, ...connectionTokens(request), ...FORWARDED, ...hiddenHeaders]);
  const headers: string[] = [];
  for (const [name, value] of rawPairs(request)) {
    const lower = name.toLowerCase();
    if (dropped.has(lower)) continue;
    const kept = lower === "cookie" ? withoutOwnCookies(value) : value;
    if (kept !== undefined) headers.push(name, kept);
  }
  const before = textOf(request.headers["x-forwarded-for"]);
  headers.push("X-Forwarded-For", before === undefined ? address : `${before}, ${address}`);
  headers.push("X-Forwarded-Host", textOf(request.headers["x-forwarded-host"]) ?? request.headers.host ?? "");
  headers.push("X-Forwarded-Proto", textOf(request.headers["x-forwarded-proto"]) ?? proto);
  return headers;
}

/** Returns the response headers for the client. */
export function responseHeaders(response: IncomingMessage, { setsOwnCookie }: ForwardRules): string[] {
  const dropped = new Set([...HOP_HEADERS, ...connectionTokens(response)]);
  return rawPairs(response).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    return dropped.has(lower) || (lower === "set-cookie" && setsOwnCookie(value)) ? [] : [name, value];
  });
}

/** Returns the names in the message's Connection header. Ignores Content-Length and Host, which must be kept. */
function connectionTokens({ headers }: IncomingMessage): string[] {
  return (headers.connection ?? "")
    .split(",")
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "" && token !== "content-length" && token !== "host");
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
