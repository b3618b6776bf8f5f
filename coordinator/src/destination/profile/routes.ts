import type {
  Route as ProfileRoute,
  RequestMatch,
  ResponseClass,
  WeightedDst,
} from "@forage/proto/destination";
import type { RouteBackend, RouteMatch, RouteRule } from "@forage/proto/forest/v1/forage";
import { type HttpMethod, HttpMethod_Registered } from "@forage/proto/http_types";
import { compareMatches, matchesEverything, normalMatch } from "../../gateway/match.ts";
import { compareRoutes, type Route } from "../../gateway/route.ts";
import type { Retry } from "../hints/service-hints.ts";
import { pathRegex } from "./path-regex.ts";
import type { ServiceRoute } from "./service-routes.ts";

/** The most routes of a profile, because a profile is a single message. */
const MAX_ROUTES = 500;
const SAFE_METHODS = ["GET", "HEAD", "OPTIONS", "TRACE"];
/** The responses that count as failures, which are retried if the request permits it. */
const FAILURES: ResponseClass = {
  condition: { match: { $case: "status", value: { min: 500, max: 599 } } },
  isFailure: true,
};

interface Candidate {
  readonly route: Route;
  readonly rule: RouteRule;
  readonly match: RouteMatch;
}

/**
 * Returns the routes of a profile, in the order of precedence of gateways. Each match of a rule
 * becomes a route. Matches on headers or query parameters are omitted: a profile can't express
 * them, and without the condition they would match too much.
 */
export function profileRoutes(routes: readonly ServiceRoute[], retry: Retry): ProfileRoute[] {
  const candidates = routes.flatMap(candidatesOf);
  // The sort is stable, so equal routes keep their order.
  candidates.sort((a, b) => compareMatches(a.match, b.match) || compareRoutes(a.route, b.route));
  return candidates.slice(0, MAX_ROUTES).map((candidate) => profileRoute(candidate, retry));
}

/**
 * Returns the candidates of a route. There are none for passed-through TLS, because its requests
 * can't be read.
 */
function candidatesOf({ route, rules }: ServiceRoute): Candidate[] {
  if (route.tls?.mode === "Passthrough") return [];
  return rules.flatMap((rule) =>
    (rule.matches.length === 0 ? [undefined] : rule.matches)
      .map(normalMatch)
      .filter(({ headers, queryParams }) => headers.length === 0 && queryParams.length === 0)
      .map((match) => ({ route, rule, match })),
  );
}

/**
 * Returns the backends among which all traffic of the service is split, from a rule that matches
 * everything; empty if there is none. A profile can't split the traffic of single paths.
 */
export function splitBackends(routes: readonly ServiceRoute[]): readonly RouteBackend[] {
  const rules = routes.filter(({ own }) => own).flatMap(({ rules }) => rules);
  const backends = rules.find((rule) => rule.backends.length > 0 && matchesAll(rule))?.backends ?? [];
  // If all weights are zero, the backends share the traffic equally.
  if (backends.every(({ weight }) => weight === 0)) return backends.map((b) => ({ ...b, weight: 1 }));
  return backends.filter(({ weight }) => weight > 0);
}

/** Converts backends to the form of profiles. A backend without a port uses the requested port. */
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
  return matches.length === 0 || matches.some((match) => matchesEverything(normalMatch(match)));
}

function profileRoute({ route, rule, match }: Candidate, retry: Retry): ProfileRoute {
  return {
    condition: conditionOf(match),
    responseClasses: [FAILURES],
    metricsLabels: { route: route.name },
    isRetryable: retry === "all" || (retry === "safe" && SAFE_METHODS.includes(match.method)),
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
