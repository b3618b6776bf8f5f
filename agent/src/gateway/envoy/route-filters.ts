import type { GatewayRule } from "@forage/proto/forage/agent/v1/agent";
import type {
  RequestHeaderModifier,
  RequestRedirect,
  RouteFilter,
  UrlRewrite,
} from "@forage/proto/forest/v1/forage";
import { clusterName, mirrorTarget } from "./backends.ts";
import type { Json, JsonObject } from "./json.ts";
import { prefixOf } from "./route-match.ts";

type FilterCase = NonNullable<RouteFilter["filter"]>["$case"];
type FilterValue<Case extends FilterCase> = Extract<
  NonNullable<RouteFilter["filter"]>,
  { $case: Case }
>["value"];

/** Returns the rule's filters of one kind. */
export function filtersOf<const Case extends FilterCase>(rule: GatewayRule, kind: Case): FilterValue<Case>[] {
  return rule.filters.flatMap(({ filter }) =>
    filter?.$case === kind ? [filter.value as FilterValue<Case>] : [],
  );
}

/**
 * Returns the changes of headers for requests to the backend and for responses, including the gateway's own responses.
 */
export function headerChanges(rule: GatewayRule): JsonObject {
  return {
    ...changesOf("request", filtersOf(rule, "requestHeaderModifier")),
    ...changesOf("response", filtersOf(rule, "responseHeaderModifier")),
  };
}

/** Returns the host and path that the backend receives, and the targets of mirroring. */
export function rewritesOf(rule: GatewayRule): JsonObject {
  const [rewrite] = filtersOf(rule, "urlRewrite");
  const mirrors = filtersOf(rule, "requestMirror").map((mirror) => ({
    cluster: clusterName(mirrorTarget(rule, mirror)),
    // The mirrored request keeps the same host.
    disable_shadow_host_suffix_append: true,
  }));
  return {
    ...(rewrite?.path && pathRewrite(rule, rewrite.path)),
    ...(rewrite?.hostname && { host_rewrite_literal: rewrite.hostname }),
    ...(mirrors.length > 0 && { request_mirror_policies: mirrors }),
  };
}

const CODES = new Map([
  [301, "MOVED_PERMANENTLY"],
  [302, "FOUND"],
  [303, "SEE_OTHER"],
  [307, "TEMPORARY_REDIRECT"],
  [308, "PERMANENT_REDIRECT"],
]);

/** The scheme, port and hostname at which the request arrived. */
export interface RequestOrigin {
  readonly scheme: "http" | "https";
  readonly port: number;
  /** The name as routes spell it, with a leading `*` for a wildcard. */
  readonly hostname: string;
}

/** Returns a redirect. Unset parts are those of the request, except for a port that belongs to another scheme. */
export function redirectOf(redirect: RequestRedirect, at: RequestOrigin): JsonObject {
  const { scheme, hostname, port, path, statusCode } = redirect;
  const target = scheme || at.scheme;
  const otherScheme = target !== at.scheme;
  const requestedPort = port || (otherScheme ? defaultPort(target) : hostname ? at.port : 0);
  return {
    ...(otherScheme && { scheme_redirect: target }),
    ...authorityOf(hostname, requestedPort, target, at),
    ...(path && { path_redirect: path }),
    response_code: CODES.get(statusCode) ?? "FOUND",
  };
}

/** Returns the host and port of a redirect. `Location` omits the default port of its scheme. */
function authorityOf(hostname: string, port: number, scheme: string, at: RequestOrigin): JsonObject {
  if (port === 0) return {};
  const named = hostname || (at.hostname.startsWith("*") ? "" : at.hostname);
  if (port !== defaultPort(scheme))
    return { ...(hostname && { host_redirect: hostname }), port_redirect: port };
  // With a name, Envoy omits the port. Without one, Envoy keeps the request's port unless it is the default of the old
  // scheme.
  if (named !== "") return { host_redirect: named };
  return at.port === defaultPort(at.scheme) ? {} : { port_redirect: port };
}

function defaultPort(scheme: string): number {
  return scheme === "https" ? 443 : 80;
}

function changesOf(
  direction: "request" | "response",
  modifiers: readonly RequestHeaderModifier[],
): JsonObject {
  const added: Json[] = [];
  const removed: string[] = [];
  for (const { set, add, remove } of modifiers) {
    for (const [key, value] of Object.entries(set))
      added.push(headerOption(key, value, "OVERWRITE_IF_EXISTS_OR_ADD"));
    for (const [key, value] of Object.entries(add))
      added.push(headerOption(key, value, "APPEND_IF_EXISTS_OR_ADD"));
    removed.push(...remove);
  }
  return {
    ...(added.length > 0 && { [`${direction}_headers_to_add`]: added }),
    ...(removed.length > 0 && { [`${direction}_headers_to_remove`]: removed }),
  };
}

function headerOption(key: string, value: string, action: string): JsonObject {
  // Envoy expands text between percent signs; a doubled percent sign is literal.
  const literal = value.replaceAll("%", "%%");
  return { header: { key, value: literal }, append_action: action, keep_empty_value: true };
}

function pathRewrite(rule: GatewayRule, path: NonNullable<UrlRewrite["path"]>): JsonObject {
  const prefix = prefixOf(rule.match?.path);
  const replacesPrefix = path.type === "" || path.type === "PathPrefix";
  if (!replacesPrefix || prefix === undefined) return regexRewrite("^/.*$", path.value);
  const replacement = path.value.replace(/\/+$/, "");
  // Replacing "/foo" by "/" must not turn "/foo/bar" into "//bar".
  if (replacement === "") return regexRewrite(`^${quoted(prefix)}/*`, "/");
  // Replacing "/" by "/foo" turns "/" into "/foo" and "/bar" into "/foo/bar".
  if (prefix === "") return regexRewrite("^/?", `${replacement}/`);
  return regexRewrite(`^${quoted(prefix)}`, replacement);
}

/** Rewrites only the path; the query stays. */
function regexRewrite(regex: string, replacement: string): JsonObject {
  return {
    regex_rewrite: { pattern: { regex }, substitution: replacement.replaceAll("\\", "\\\\") },
  };
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
