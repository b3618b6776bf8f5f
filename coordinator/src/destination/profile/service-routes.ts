import type { RouteRule } from "@forage/proto/forest/v1/forage";
import { compareRoutes, type Route, routeOf } from "../../gateway/route.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/** The part of a route that applies to requests to one service. */
export interface ServiceRoute {
  readonly route: Route;
  readonly rules: readonly RouteRule[];
  /** Whether the route targets the service itself, and so may redirect all of its traffic. */
  readonly own: boolean;
}

/**
 * Returns the routes that target a service, including its inline route, and the rules of other
 * routes with the service as a backend, in the order of precedence of gateways.
 */
export function routesOf(state: ClusterView, namespace: string, service: string): ServiceRoute[] {
  const found = state.resources(namespace).flatMap((entry): ServiceRoute[] => {
    const route = routeOf(entry.record);
    if (route === undefined) return [];
    const own = route.target === service;
    const rules = rulesOf(entry).filter((rule) => own || leadsTo(rule, service));
    return rules.length === 0 ? [] : [{ route, rules, own }];
  });
  return found.sort((a, b) => compareRoutes(a.route, b.route));
}

function rulesOf({ record }: ResourceEntry): readonly RouteRule[] {
  const spec = record.resource?.spec;
  if (spec?.$case === "route") return spec.value.rules;
  return spec?.$case === "service" ? (spec.value.inlineRoute?.rules ?? []) : [];
}

/**
 * Reports whether the rule sends unmodified requests to the service. If a rule rewrites the path,
 * its match does not describe the requests that the service receives.
 */
function leadsTo({ backends, filters }: RouteRule, service: string): boolean {
  const rewritten = filters.some(
    ({ filter }) => filter?.$case === "urlRewrite" && filter.value.path !== undefined,
  );
  return !rewritten && backends.some((backend) => backend.service === service);
}
