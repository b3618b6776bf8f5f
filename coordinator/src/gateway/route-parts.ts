import type { GatewayBackend } from "@forage/proto/forage/agent/v1/agent";
import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { type PortsOf, type RefProblem, resolveRule } from "./backends.ts";
import { type Entry, entriesOf } from "./ordered-rules.ts";
import type { Route } from "./route.ts";

/** The requirements of one route, independent of other routes. */
export interface RouteParts {
  readonly entries: readonly Entry[];
  /** The targets of a route that passes streams through. Empty for others. */
  readonly passthrough: readonly GatewayBackend[];
  readonly problems: readonly RefProblem[];
}

interface Known {
  /** The services that were looked up, with their ports. */
  readonly ports: ReadonlyMap<string, readonly ServicePort[] | undefined>;
  readonly parts: RouteParts;
}

/** Pure. */
export function routeParts(route: Route, portsOf: PortsOf): RouteParts {
  const { entries, problems } = entriesOf(route, portsOf);
  const handedOn = passthroughOf(route, portsOf);
  return { entries, passthrough: handedOn.backends, problems: [...problems, ...handedOn.problems] };
}

/** The same as `routeParts`, for routes and ports of services that are the same objects as long as they don't change. */
export class RoutePartsCache {
  readonly #known = new WeakMap<Route, Known>();

  of(route: Route, portsOf: PortsOf): RouteParts {
    const known = this.#known.get(route);
    if (known !== undefined && isSame(route, known, portsOf)) return known.parts;
    const ports = new Map<string, readonly ServicePort[] | undefined>();
    const parts = routeParts(route, (namespace, service) => {
      const found = portsOf(namespace, service);
      ports.set(service, found);
      return found;
    });
    this.#known.set(route, { ports, parts });
    return parts;
  }
}

/** Reports whether all services that the route names are in its namespace and unchanged. */
function isSame({ namespace }: Route, { ports }: Known, portsOf: PortsOf): boolean {
  for (const [service, found] of ports) if (portsOf(namespace, service) !== found) return false;
  return true;
}

/** Returns the part of a route whose requests stay encrypted; such a route has one rule. */
function passthroughOf(
  route: Route,
  portsOf: PortsOf,
): { readonly backends: readonly GatewayBackend[]; readonly problems: readonly RefProblem[] } {
  const [rule] = route.rules;
  if (route.tls?.mode !== "Passthrough" || rule === undefined) return { backends: [], problems: [] };
  const { backends, problems } = resolveRule(route, 0, rule, portsOf);
  if (backends.length > 0) return { backends, problems };
  // None at all would mean that it isn't handed on, and another's certificate would be shown.
  return {
    backends: [{ namespace: route.namespace, service: route.target, port: 443, weight: 1 }],
    problems,
  };
}
