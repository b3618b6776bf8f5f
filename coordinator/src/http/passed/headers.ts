import type { HttpHeader } from "@forage/proto/forage/coordinator/v1/coordinator";

/** Headers of one connection. They say nothing about the next one. */
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

/** Returns the headers that reach the other end. */
export function endToEnd(headers: readonly HttpHeader[]): [string, string][] {
  return headers.flatMap(({ name, value }) =>
    OF_CONNECTION.has(name.toLowerCase()) ? [] : [[name, value] as [string, string]],
  );
}
