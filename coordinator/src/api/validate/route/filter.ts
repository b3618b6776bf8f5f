import type {
  PathMatch,
  RequestHeaderModifier,
  RequestRedirect,
  RouteFilter,
  RouteMatch,
  UrlRewrite,
} from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { hostnameProblem } from "../syntax/hosts.ts";
import { headerNameProblem, headerValueProblem, urlPathProblem } from "../syntax/http.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { optionalPortProblem, portProblem } from "../syntax/numbers.ts";
import { choiceProblem, requiredChoiceProblem } from "../syntax/text.ts";

/** The limits of the Gateway API, for filters and for names in one list of a header modifier. */
const MAX_FILTERS = 16;
const MAX_HEADERS = 16;
const REDIRECT_CODES = [301, 302, 303, 307, 308];

export function isRedirect({ filter }: RouteFilter): boolean {
  return filter?.$case === "requestRedirect";
}

export function validateFilters(
  filters: readonly RouteFilter[],
  matches: readonly RouteMatch[],
  field: Field,
): void {
  if (filters.length > MAX_FILTERS) field.invalid(`must be at most ${MAX_FILTERS}`);
  for (const [index, { filter }] of filters.entries()) validateFilter(filter, matches, field.item(index));
  const kinds = filters.map(({ filter }) => filter?.$case);
  for (const [index, kind] of kinds.entries()) {
    // A rule may mirror to several services. A second filter of any other kind would override the first.
    if (kind !== undefined && kind !== "requestMirror" && kinds.indexOf(kind) < index)
      field.item(index).invalid("is of the same kind as an earlier filter of this rule");
    if (kind === "urlRewrite" && kinds.includes("requestRedirect"))
      field.item(index).invalid("has no effect in a rule that redirects");
  }
}

function validateFilter(filter: RouteFilter["filter"], matches: readonly RouteMatch[], field: Field): void {
  switch (filter?.$case) {
    case "requestHeaderModifier":
      validateHeaders(filter.value, field.at("request_header_modifier"));
      return;
    case "responseHeaderModifier":
      validateHeaders(filter.value, field.at("response_header_modifier"));
      return;
    case "requestRedirect":
      validateRedirect(filter.value, field.at("request_redirect"));
      return;
    case "urlRewrite":
      validateRewrite(filter.value, matches, field.at("url_rewrite"));
      return;
    case "requestMirror":
      field.at("request_mirror").at("service").check(dnsLabelProblem(filter.value.service));
      field.at("request_mirror").at("port").check(portProblem(filter.value.port));
      return;
    case undefined:
      field.invalid(
        "must have one of request_header_modifier, response_header_modifier, request_redirect, url_rewrite, request_mirror",
      );
      return;
    default:
      filter satisfies never;
  }
}

function validateHeaders({ set, add, remove }: RequestHeaderModifier, field: Field): void {
  const named = [
    ...Object.entries(set).map(([name, value]) => ({ name, value, at: field.at("set").key(name) })),
    ...Object.entries(add).map(([name, value]) => ({ name, value, at: field.at("add").key(name) })),
    ...remove.map((name, index) => ({ name, value: "", at: field.at("remove").item(index) })),
  ];
  const seen = new Set<string>();
  for (const { name, value, at } of named) {
    const same = name.toLowerCase();
    at.check(headerNameProblem(name) ?? headerValueProblem(value));
    if (same === "host") at.invalid("must not be Host: url_rewrite.hostname changes it");
    if (seen.has(same)) at.invalid("is changed twice by this filter");
    seen.add(same);
  }
  for (const [list, count] of [
    ["set", Object.keys(set).length],
    ["add", Object.keys(add).length],
    ["remove", remove.length],
  ] as const) {
    if (count > MAX_HEADERS) field.at(list).invalid(`must be at most ${MAX_HEADERS}`);
  }
}

function validateRedirect(redirect: RequestRedirect, field: Field): void {
  const { scheme, hostname, port, path, statusCode } = redirect;
  field.at("scheme").check(choiceProblem(scheme, ["http", "https"]));
  if (hostname !== "") field.at("hostname").check(hostnameProblem(hostname));
  field.at("port").check(optionalPortProblem(port));
  if (path !== "") field.at("path").check(urlPathProblem(path));
  if (statusCode !== 0 && !REDIRECT_CODES.includes(statusCode))
    field.at("status_code").invalid(`must be one of ${REDIRECT_CODES.join(", ")}`);
  if (scheme === "" && hostname === "" && port === 0 && path === "")
    field.invalid("must change the scheme, hostname, port or path: otherwise it redirects to itself");
}

function validateRewrite({ hostname, path }: UrlRewrite, matches: readonly RouteMatch[], field: Field): void {
  if (hostname !== "") field.at("hostname").check(hostnameProblem(hostname));
  if (hostname === "" && path === undefined) field.invalid("must change the hostname or the path");
  if (path !== undefined) validateReplacement(path, matches, field.at("path"));
}

/** Validates the replacement of a path: Exact replaces the whole path, PathPrefix the matched prefix. */
function validateReplacement({ type, value }: PathMatch, matches: readonly RouteMatch[], field: Field): void {
  field.at("type").check(requiredChoiceProblem(type === "" ? "PathPrefix" : type, ["Exact", "PathPrefix"]));
  field.at("value").check(urlPathProblem(value));
  const kinds = matches.map(({ path }) => path?.type ?? "");
  if (type !== "Exact" && kinds.some((kind) => kind !== "" && kind !== "PathPrefix"))
    field.at("type").invalid("must be Exact unless all matches of the rule are of type PathPrefix");
}
