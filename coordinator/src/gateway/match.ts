import type { HeaderMatch, PathMatch, RouteMatch } from "@forage/proto/forest/v1/forage";

/**
 * Normalizes a match, so that equivalent matches become equal: default types are written out, names
 * are sorted, and a path that matches everything is omitted. Prefixes have no slash at their end.
 */
export function normalMatch(match: RouteMatch | undefined): RouteMatch {
  if (match === undefined) return { path: undefined, headers: [], queryParams: [], method: "" };
  return {
    path: normalPath(match.path),
    headers: normalNamed(match.headers.map((it) => ({ ...it, name: it.name.toLowerCase() }))),
    queryParams: normalNamed(match.queryParams),
    method: match.method,
  };
}

/** Returns a key that is equal for equal matches. The match must be normalized. */
export function matchKey({ path, headers, queryParams, method }: RouteMatch): string {
  const named = (list: readonly HeaderMatch[]) => list.map(({ type, name, value }) => [type, name, value]);
  return JSON.stringify([path?.type, path?.value, named(headers), named(queryParams), method]);
}

export function matchesEverything({ path, headers, queryParams, method }: RouteMatch): boolean {
  return path === undefined && headers.length === 0 && queryParams.length === 0 && method === "";
}

/**
 * Compares two normalized matches by the Gateway API's precedence for requests that both match:
 * exact paths, then regular expressions, then prefixes; longer paths first; then matches with a
 * method, with more headers, and with more query parameters. Returns zero for equal precedence.
 */
export function compareMatches(a: RouteMatch, b: RouteMatch): number {
  return compareRanks(ranksOf(a), ranksOf(b));
}

/** Compares two results of `ranksOf`, for callers that compare often. */
export function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < a.length; index++) {
    const difference = (b[index] ?? 0) - (a[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Formats a match for messages, such as `PathPrefix /cart, GET, header x-canary`. */
export function matchText(match: RouteMatch): string {
  const { path, headers, queryParams, method } = match;
  const parts = path === undefined ? [] : [`${path.type} ${path.value}`];
  if (method !== "") parts.push(method);
  parts.push(
    ...headers.map(({ name }) => `header ${name}`),
    ...queryParams.map(({ name }) => `query ${name}`),
  );
  return parts.length === 0 ? "everything" : parts.join(", ");
}

const PATH_RANKS: Readonly<Record<string, number>> = { Exact: 3, RegularExpression: 2, PathPrefix: 1 };

/**
 * Returns the precedence of a match as numbers that are compared in order; the higher number wins.
 */
export function ranksOf({ path, headers, queryParams, method }: RouteMatch): readonly number[] {
  const kind = path === undefined ? 1 : (PATH_RANKS[path.type] ?? 0);
  const length = path?.value.length ?? 1;
  return [kind, length, method === "" ? 0 : 1, headers.length, queryParams.length];
}

function normalPath(path: PathMatch | undefined): PathMatch | undefined {
  if (path === undefined) return undefined;
  const type = path.type === "" ? "PathPrefix" : path.type;
  if (type !== "PathPrefix") return { type, value: path.value === "" ? "/" : path.value };
  const value = path.value.replace(/\/+$/, "");
  return value === "" ? undefined : { type, value };
}

function normalNamed(list: readonly HeaderMatch[]): HeaderMatch[] {
  return list
    .map(({ type, name, value }) => ({ type: type === "" ? "Exact" : type, name, value }))
    .sort((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
}
