import type { HttpHeader } from "@forage/proto/forage/coordinator/v1/coordinator";

/** Headers that apply to a single connection and must not be forwarded. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...[
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
  ],
]);

/** Returns the headers to forward. */
export function endToEnd(headers: readonly HttpHeader[]): [string, string][] {
  return headers.flatMap(({ name, value }) =>
    OF_CONNECTION.has(name.toLowerCase()) ? [] : [[name, value] as [string, string]],
  );
}
