import type { RequestMatch, ResponseClass, Route, WeightedDst } from "@forage/proto/destination";
import type { RouteBackend, RouteMatch, RouteRule } from "@forage/proto/forest/v1/forage";
import { type HttpMethod, HttpMethod_Registered } from "@forage/proto/http_types";
import type { Retry } from "../hints/service-hints.ts";
import { pathRegex } from "./path-regex.ts";

/** A route of a service, whether a resource of its own or declared with the service. */
export interface ServiceRoute {
  readonly name: string;
  /** Of the route's resource; false: it is the service's inline route. */
  readonly ownResource: boolean;
  readonly priority: number;
  readonly rules: readonly RouteRule[];
}

/** A profile is one message; nobody reads more rules than these. */
const maxRoutes = 500;
const safeMethods = ["GET", "HEAD", "OPTIONS", "TRACE"];
/** Responses that count as failed, and are repeated where requests may be. */
const failures: ResponseClass = {
  condition: { match: { $case: "status", value: { min: 500, max: 599 } } },
  isFailure: true,
};

interface Candidate {
  readonly route: Route;
  readonly rank: readonly number[];
}

/**
 * Pure: the routes of a profile, in the order in which they are to be tried. Each match of a rule becomes one. A match on
 * headers or queries can't be told to proxies; it is left out, since without that condition it would take in too much.
 */
export function profileRoutes(routes: readonly ServiceRoute[], retry: Retry): Route[] {
  const candidates: Candidate[] = [];
  for (const { name, priority, rules } of routes) {
    for (const rule of rules) {
      for (const match of rule.matches.length === 0 ? [anything] : rule.matches) {
        if (match.headers.length > 0 || match.queryParams.length > 0) continue;
        candidates.push({ route: routeOf(name, rule, match, retry), rank: [...rankOf(match), priority] });
      }
    }
  }
  // Where nothing tells two apart they stay in order: the sort is stable.
  candidates.sort((a, b) => compareRanks(b.rank, a.rank));
  return candidates.slice(0, maxRoutes).map(({ route }) => route);
}

const anything: RouteMatch = { path: undefined, headers: [], queryParams: [], method: "" };

/**
 * Pure: the backends that all of the service's traffic is split over: those of a rule that matches everything. Split traffic
 * of single paths can't be told by a profile. Empty: there are none.
 */
export function splitBackends(routes: readonly ServiceRoute[]): readonly RouteBackend[] {
  const rules = [...routes].sort((a, b) => b.priority - a.priority).flatMap(({ rules }) => rules);
  const backends = rules.find((rule) => rule.backends.length > 0 && matchesAll(rule))?.backends ?? [];
  // Without any weight all count the same.
  if (backends.every(({ weight }) => weight === 0)) return backends.map((b) => ({ ...b, weight: 1 }));
  return backends.filter(({ weight }) => weight > 0);
}

/** Pure: backends as proxies ask for them; those without a port mean the one that was asked about. */
export function overridesOf(
  backends: readonly RouteBackend[],
  { namespace, domain, port }: { readonly namespace: string; readonly domain: string; readonly port: number },
): WeightedDst[] {
  return backends.map((backend) => {
    const to = backend.port === 0 ? port : backend.port;
    return {
      authority: `${backend.service}.${namespace}.svc.${domain}:${to}`,
      weight: backend.weight,
      backendRef: {
        kind: {
          $case: "resource",
          value: { group: "core", kind: "Service", name: backend.service, namespace, section: "", port: to },
        },
      },
    };
  });
}

function matchesAll({ matches }: RouteRule): boolean {
  return (
    matches.length === 0 ||
    matches.some((match) => {
      const conditions = match.headers.length + match.queryParams.length;
      return conditions === 0 && match.method === "" && pathRegex(match.path) === undefined;
    })
  );
}

function routeOf(name: string, rule: RouteRule, match: RouteMatch, retry: Retry): Route {
  return {
    condition: conditionOf(match),
    responseClasses: [failures],
    metricsLabels: { route: name },
    isRetryable: retry === "all" || (retry === "safe" && safeMethods.includes(match.method)),
    timeout: rule.timeout,
  };
}

function conditionOf({ path, method }: RouteMatch): RequestMatch {
  const regex = pathRegex(path);
  const conditions: RequestMatch[] = [];
  if (regex !== undefined || method === "")
    conditions.push({ match: { $case: "path", value: { regex: regex ?? ".*" } } });
  if (method !== "") conditions.push({ match: { $case: "method", value: methodOf(method) } });
  const [only, ...others] = conditions;
  if (only !== undefined && others.length === 0) return only;
  return { match: { $case: "all", value: { matches: conditions } } };
}

function methodOf(method: string): HttpMethod {
  const known = Object.entries(HttpMethod_Registered).find(([name, value]) => name === method && value >= 0);
  return known === undefined
    ? { type: { $case: "unregistered", value: method } }
    : { type: { $case: "registered", value: known[1] } };
}

/** Exact paths first, then longer ones before shorter, then those with a method; as the Gateway API orders them. */
function rankOf({ path, method }: RouteMatch): readonly number[] {
  const length = path?.value.length ?? 0;
  const kind = path?.type === "Exact" ? 2 : path?.type === "RegularExpression" ? 0 : 1;
  return [pathRegex(path) === undefined ? -1 : kind, length, method === "" ? 0 : 1];
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
