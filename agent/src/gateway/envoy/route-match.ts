import type { HeaderMatch, PathMatch, QueryParamMatch, RouteMatch } from "@forage/proto/forest/v1/forage";
import type { JsonObject } from "./json.ts";

/** Returns Envoy's match of a rule. All conditions have to hold; a rule without conditions matches every request. */
export function matchOf(match: RouteMatch | undefined): JsonObject {
  const headers = (match?.headers ?? []).map(headerMatch);
  if (match?.method) headers.push({ name: ":method", string_match: { exact: match.method } });
  const query = (match?.queryParams ?? []).map(queryMatch);
  return {
    ...pathMatch(match?.path),
    ...(headers.length > 0 && { headers }),
    ...(query.length > 0 && { query_parameters: query }),
  };
}

/** Returns a prefix without trailing slashes; "" matches all paths. Undefined: the match is not a prefix. */
export function prefixOf(path: PathMatch | undefined): string | undefined {
  if (path === undefined) return "";
  return path.type === "" || path.type === "PathPrefix" ? path.value.replace(/\/+$/, "") : undefined;
}

function pathMatch(path: PathMatch | undefined): JsonObject {
  const prefix = prefixOf(path);
  if (prefix === "") return { prefix: "/" };
  if (prefix !== undefined) return { path_separated_prefix: prefix };
  return path?.type === "RegularExpression"
    ? { safe_regex: { regex: path.value } }
    : { path: path?.value ?? "" };
}

function headerMatch({ type, name, value }: HeaderMatch): JsonObject {
  return { name, string_match: textMatch(type, value) };
}

function queryMatch({ type, name, value }: QueryParamMatch): JsonObject {
  return { name, string_match: textMatch(type, value) };
}

/** Returns a text match. Envoy's regular expressions match the whole text. */
function textMatch(type: string, value: string): JsonObject {
  return type === "RegularExpression" ? { safe_regex: { regex: value } } : { exact: value };
}
