import type { GatewayBackend, GatewayCertificate, GatewayHost } from "@forage/proto/forage/agent/v1/agent";
import type { PortsOf, RefProblem } from "./backends.ts";
import { resolveRule } from "./backends.ts";
import { Findings, type RouteFindings } from "./findings.ts";
import { coveringHostnames } from "./hostnames.ts";
import { chainEntries, type Entry, entriesOf, type OwnRules, orderEntries } from "./ordered-rules.ts";
import { type Route, routeKey } from "./route.ts";
import { askedFor, type CertificateState, decideTls, type HostTls, type TlsDecision } from "./tls.ts";

export interface CompileInput {
  /** Of one gateway. */
  readonly routes: readonly Route[];
  readonly portsOf: PortsOf;
  readonly certificateOf: (route: Route, hostname: string) => CertificateState;
}

/** What one gateway is to do. */
export interface Compiled {
  /** By hostname. */
  readonly hosts: ReadonlyMap<string, GatewayHost>;
  /** By id. */
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  /** By key of the route. */
  readonly findings: ReadonlyMap<string, RouteFindings>;
  /** Hostnames for which the cluster's issuer is asked. */
  readonly wanted: ReadonlySet<string>;
}

/** What is declared for one hostname, whatever covers it. */
interface Own {
  readonly routes: readonly Route[];
  readonly rules: OwnRules;
  readonly tls: TlsDecision;
}

/** Pure: all routes of a gateway together. In which order they are given doesn't matter. */
export function compileGateway({ routes, portsOf, certificateOf }: CompileInput): Compiled {
  const findings = new Findings(routes);
  const parts = new Map(
    routes.map((route) => {
      const { entries, problems } = entriesOf(route, portsOf);
      const passthrough = passthroughOf(route, portsOf);
      findings.refs(route, [...problems, ...passthrough.problems]);
      return [routeKey(route), { entries, passthrough: passthrough.backends }];
    }),
  );
  const own = new Map<string, Own>();
  for (const [hostname, naming] of byHostname(routes)) {
    const entries = naming.flatMap((route) => parts.get(routeKey(route))?.entries ?? []);
    own.set(hostname, {
      routes: naming,
      rules: orderEntries(entries),
      tls: decideTls({
        hostname,
        routes: naming,
        certificateOf,
        passthroughOf: (route) => parts.get(routeKey(route))?.passthrough ?? [],
      }),
    });
  }
  const hosts = new Map<string, GatewayHost>();
  const certificates = new Map<string, GatewayCertificate>();
  const names = new Set(own.keys());
  for (const [hostname, declared] of own) {
    const covering = coveringHostnames(hostname, names).flatMap((name) => own.get(name) ?? []);
    const tls = tlsInForce(declared.tls.tls, covering);
    const entries = chainEntries([declared, ...covering].map(({ rules }) => rules.entries));
    const certificate = tls.mode === "Terminate" ? tls.certificate : undefined;
    if (certificate !== undefined) {
      const { id, chainPem, keyPem } = certificate;
      certificates.set(id, { id, chainPem, keyPem });
    }
    hosts.set(hostname, {
      hostname,
      rules: entries.map((entry) => ruleOf(entry, certificate !== undefined)),
      certificate: certificate?.id ?? "",
      passthrough: tls.mode === "Passthrough" ? [...tls.backends] : [],
    });
    findings.host(hostname, { ...declared, inForce: entries, serving: tls });
  }
  return { hosts, certificates, findings: findings.all(), wanted: wantedOf(own) };
}

function byHostname(routes: readonly Route[]): Map<string, Route[]> {
  const found = new Map<string, Route[]>();
  for (const route of routes) {
    for (const hostname of new Set(route.hostnames)) {
      const naming = found.get(hostname);
      if (naming === undefined) found.set(hostname, [route]);
      else naming.push(route);
    }
  }
  // In one order always, as findings are told in it.
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Who adds a route for a name takes nothing from what covers that name: without TLS of its own, or without its certificate, it
 * is served as before.
 */
function tlsInForce(own: HostTls, covering: readonly Own[]): HostTls {
  if (own.mode === "Passthrough" || (own.mode === "Terminate" && own.certificate !== undefined)) return own;
  for (const { tls } of covering) {
    if (tls.tls.mode === "Terminate" && tls.tls.certificate !== undefined) return tls.tls;
    if (tls.tls.mode === "Passthrough" && own.mode === "none") return tls.tls;
  }
  return own;
}

/** What was to be encrypted is never told in plain text: without a certificate it isn't served. */
function ruleOf({ route, rule }: Entry, encrypted: boolean): GatewayHost["rules"][number] {
  if (route.tls === undefined || encrypted) return rule;
  return { ...rule, backends: [], filters: [], timeoutMs: 0n };
}

/** The one rule that a route has whose requests can't be looked into. */
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

function wantedOf(own: ReadonlyMap<string, Own>): ReadonlySet<string> {
  const wanted = new Set<string>();
  for (const [hostname, { routes, tls }] of own) {
    if (tls.tls.mode !== "Terminate") continue;
    const { certificate } = tls.tls;
    const issued = `issued/${hostname}`;
    const asked = routes.some(
      (route) => route.tls?.mode === "Terminate" && askedFor(route, hostname) === issued,
    );
    if (asked && (certificate === undefined || certificate.id === issued)) wanted.add(hostname);
  }
  return wanted;
}
