import type { GatewayBackend } from "@forage/proto/forage/agent/v1/agent";
import type { RouteFilter, RouteRule, ServicePort } from "@forage/proto/forest/v1/forage";
import type { Route } from "./route.ts";

/** The reason why an object to which a route refers is unavailable. */
export interface RefProblem {
  readonly reason: "BackendNotFound" | "UnsupportedProtocol";
  readonly message: string;
}

/** Returns the ports of a service; undefined if the service does not exist. */
export type PortsOf = (namespace: string, service: string) => readonly ServicePort[] | undefined;

export interface ResolvedRule {
  /**
   * The backends, including unavailable ones: their share of the requests fails, and the shares of
   * the others stay the same.
   */
  readonly backends: readonly GatewayBackend[];
  /** The filters, without mirrors to missing backends. */
  readonly filters: readonly RouteFilter[];
  readonly problems: readonly RefProblem[];
}

/** Resolves the backends of one rule. */
export function resolveRule(route: Route, index: number, rule: RouteRule, portsOf: PortsOf): ResolvedRule {
  const place = `rules[${index}]`;
  const mirrored = resolveMirrors(route, place, rule.filters, portsOf);
  const { filters } = mirrored;
  if (filters.some(({ filter }) => filter?.$case === "requestRedirect"))
    return { backends: [], filters, problems: mirrored.problems };
  const { backends, problems } =
    rule.backends.length === 0
      ? resolveTarget(route, place, portsOf)
      : resolveBackends(route, place, rule, portsOf);
  return { backends, filters, problems: [...problems, ...mirrored.problems] };
}

type Resolved = Pick<ResolvedRule, "backends" | "problems">;

/**
 * Resolves the backends and their weights. Without any weights all backends get equal shares;
 * otherwise those without a weight get no requests.
 */
function resolveBackends(route: Route, place: string, { backends }: RouteRule, portsOf: PortsOf): Resolved {
  const alike = backends.every(({ weight }) => weight === 0);
  const problems = backends.flatMap(
    ({ service, port }, index) =>
      problemOf(`${place}.backends[${index}]`, service, port, portsOf(route.namespace, service)) ?? [],
  );
  const resolved = backends.map(({ service, port, weight }) => {
    return { namespace: route.namespace, service, port, weight: alike ? 1 : weight };
  });
  return { backends: resolved.filter(({ weight }) => weight > 0), problems };
}

function resolveTarget(route: Route, place: string, portsOf: PortsOf): Resolved {
  const { namespace, target: service } = route;
  const ports = portsOf(namespace, service);
  if (ports === undefined) {
    const message = `${place}: there is no service "${service}" in namespace "${namespace}"`;
    return { backends: [], problems: [{ reason: "BackendNotFound", message }] };
  }
  const port = portOfTarget(route, ports)?.port;
  if (port !== undefined) return { backends: [{ namespace, service, port, weight: 1 }], problems: [] };
  const message = `${place}: service "${service}" has no TCP port`;
  return { backends: [], problems: [{ reason: "UnsupportedProtocol", message }] };
}

/** Returns the first TCP port; for passed-through TLS, preferably the port for TLS. */
function portOfTarget({ tls }: Route, ports: readonly ServicePort[]): ServicePort | undefined {
  const tcp = ports.filter(isTcp);
  const encrypted = tcp.find(({ name, port }) => name === "https" || port === 443);
  return (tls?.mode === "Passthrough" ? encrypted : undefined) ?? tcp[0];
}

function resolveMirrors(
  { namespace }: Route,
  place: string,
  filters: readonly RouteFilter[],
  portsOf: PortsOf,
): Pick<ResolvedRule, "filters" | "problems"> {
  const problems: RefProblem[] = [];
  const kept = filters.filter(({ filter }, index) => {
    if (filter?.$case !== "requestMirror") return true;
    const { service, port } = filter.value;
    const at = `${place}.filters[${index}].request_mirror`;
    const problem = problemOf(at, service, port, portsOf(namespace, service));
    if (problem !== undefined) problems.push(problem);
    return problem === undefined;
  });
  return { filters: kept, problems };
}

function problemOf(
  place: string,
  service: string,
  port: number,
  ports: readonly ServicePort[] | undefined,
): RefProblem | undefined {
  if (ports === undefined)
    return { reason: "BackendNotFound", message: `${place}: there is no service "${service}"` };
  const listed = ports.filter((it) => it.port === port);
  if (listed.length === 0)
    return { reason: "BackendNotFound", message: `${place}: service "${service}" has no port ${port}` };
  if (listed.some(isTcp)) return undefined;
  const message = `${place}: port ${port} of service "${service}" is not TCP, and gateways support only TCP`;
  return { reason: "UnsupportedProtocol", message };
}

function isTcp({ protocol }: ServicePort): boolean {
  return protocol === "" || protocol === "TCP";
}
