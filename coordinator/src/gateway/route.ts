import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { RouteRule } from "@forage/proto/forest/v1/forage";
import { toEpochMs } from "../model/timestamp.ts";

/** A route for gateways: a resource of its own, or the inline route of a service. */
export interface Route {
  /** The kind of the resource; "service" means its inline route. */
  readonly kind: "route" | "service";
  readonly namespace: string;
  readonly name: string;
  /** The name of the gateway. */
  readonly gateway: string;
  /** The hostnames, at least one. "*" means all hosts without a route of their own. */
  readonly hostnames: readonly string[];
  /** The rules, at least one. */
  readonly rules: readonly RouteRule[];
  readonly tls: RouteTls | undefined;
  /** The service for rules without backends; may be empty. */
  readonly target: string;
  readonly priority: number;
  readonly createdMs: number;
}

export type RouteTls =
  | { readonly mode: "Passthrough" }
  /** A secret in the route's namespace. If empty, the cluster's issuer provides the certificate. */
  | { readonly mode: "Terminate"; readonly secret: string };

/** The gateway of routes that name none, and of nodes whose label names none. */
export const DEFAULT_GATEWAY = "default";
/** The hostname that means all hosts without a route of their own. */
export const ANY_HOSTNAME = "*";

const everything: RouteRule = { matches: [], backends: [], filters: [], timeout: undefined };

/**
 * Returns the route of a resource; undefined if gateways do not serve the resource, or if it is
 * being deleted.
 */
export function routeOf(record: ResourceRecord): Route | undefined {
  const spec = record.resource?.spec;
  if (record.deleting || spec === undefined) return undefined;
  const { namespace, name } = record;
  const createdMs = toEpochMs(record.createdAt) ?? 0;
  if (spec.$case === "route") {
    const { gatewayRef, targetService, priority } = spec.value;
    const gateway = gatewayRef === "" ? DEFAULT_GATEWAY : gatewayRef;
    const own = {
      kind: "route",
      namespace,
      name,
      gateway,
      target: targetService,
      priority,
      createdMs,
    } as const;
    return { ...own, ...contentOf(spec.value) };
  }
  if (spec.$case !== "service" || spec.value.inlineRoute === undefined) return undefined;
  const own = { kind: "service", namespace, name, target: name, priority: 0, createdMs } as const;
  return { ...own, gateway: DEFAULT_GATEWAY, ...contentOf(spec.value.inlineRoute) };
}

/** Returns the unique key of a route, such as `route/shop/web`. */
export function routeKey({ kind, namespace, name }: Pick<Route, "kind" | "namespace" | "name">): string {
  return `${kind}/${namespace}/${name}`;
}

/** Returns the name of the route in messages. */
export function routeTitle({ kind, namespace, name }: Route): string {
  return kind === "route" ? `route ${namespace}/${name}` : `the inline route of service ${namespace}/${name}`;
}

/** Compares routes whose matches have equal precedence; the first one wins. The order is total. */
export function compareRoutes(a: Route, b: Route): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.createdMs !== b.createdMs) return a.createdMs - b.createdMs;
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.kind, b.kind);
}

/** Explains why the first route takes precedence over the second. */
export function whyFirst(first: Route, second: Route): string {
  if (first.priority !== second.priority) return "has the higher priority";
  return first.createdMs !== second.createdMs ? "is older" : "comes first by name";
}

function contentOf(given: {
  readonly hostnames: readonly string[];
  readonly rules: readonly RouteRule[];
  readonly tls: { readonly mode: string; readonly certificateRef: string } | undefined;
}): Pick<Route, "hostnames" | "rules" | "tls"> {
  const { hostnames, rules, tls } = given;
  return {
    hostnames: hostnames.length === 0 ? [ANY_HOSTNAME] : hostnames,
    rules: rules.length === 0 ? [everything] : rules,
    tls:
      tls === undefined
        ? undefined
        : tls.mode === "Passthrough"
          ? { mode: "Passthrough" }
          : { mode: "Terminate", secret: tls.certificateRef },
  };
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
