import type { GatewayBackend } from "@forage/proto/forage/agent/v1/agent";
import type { ServicePort } from "@forage/proto/forest/v1/forage";
import { type PortsOf, type RefProblem, resolveRule } from "./backends.ts";
import { type Entry, entriesOf } from "./ordered-rules.ts";
import type { Route } from "./route.ts";

/** The result of resolving one route, independent of other routes. */
export interface ResolvedRoute {
  readonly entries: readonly Entry[];
  /** The targets of a route with passed-through TLS; empty for other routes. */
  readonly passthrough: readonly GatewayBackend[];
  readonly problems: readonly RefProblem[];
}

interface Known {
  /** The services that were looked up, with their ports. */
  readonly ports: ReadonlyMap<string, readonly ServicePort[] | undefined>;
  readonly resolved: ResolvedRoute;
}

/** Resolves the rules and backends of a route. */
export function resolveRoute(route: Route, portsOf: PortsOf): ResolvedRoute {
  const { entries, problems } = entriesOf(route, portsOf);
  const handedOn = passthroughOf(route, portsOf);
  return { entries, passthrough: handedOn.backends, problems: [...problems, ...handedOn.problems] };
}

/**
 * Resolves routes like `resolveRoute`, and returns cached results for unchanged routes. Unchanged
 * routes and ports must be the same objects.
 */
export class RouteResolver {
  readonly #known = new WeakMap<Route, Known>();

  of(route: Route, portsOf: PortsOf): ResolvedRoute {
    const known = this.#known.get(route);
    if (known !== undefined && isSame(route, known, portsOf)) return known.resolved;
    const ports = new Map<string, readonly ServicePort[] | undefined>();
    const resolved = resolveRoute(route, (namespace, service) => {
      const found = portsOf(namespace, service);
      ports.set(service, found);
      return found;
    });
    this.#known.set(route, { ports, resolved });
    return resolved;
  }
}

/** Reports whether all services to which the route refers are in its namespace and unchanged. */
function isSame({ namespace }: Route, { ports }: Known, portsOf: PortsOf): boolean {
  for (const [service, found] of ports) if (portsOf(namespace, service) !== found) return false;
  return true;
}

/** Returns the backends of a route with passed-through TLS, which has a single rule. */
function passthroughOf(
  route: Route,
  portsOf: PortsOf,
): { readonly backends: readonly GatewayBackend[]; readonly problems: readonly RefProblem[] } {
  const [rule] = route.rules;
  if (route.tls?.mode !== "Passthrough" || rule === undefined) return { backends: [], problems: [] };
  const { backends, problems } = resolveRule(route, 0, rule, portsOf);
  if (backends.length > 0) return { backends, problems };
  // Without any target the gateway would not pass the stream through, and clients would receive the
  // certificate of another hostname.
  return {
    backends: [{ namespace: route.namespace, service: route.target, port: 443, weight: 1 }],
    problems,
  };
}
