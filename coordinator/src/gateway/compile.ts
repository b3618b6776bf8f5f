import type { GatewayCertificate, GatewayHost } from "@forage/proto/forage/agent/v1/agent";
import type { PortsOf } from "./backends.ts";
import { Findings, type RouteFindings } from "./findings.ts";
import { coveringHostnames } from "./hostnames.ts";
import { chainEntries, type Entry, type OwnRules, orderEntries } from "./ordered-rules.ts";
import { resolveRoute } from "./resolve-route.ts";
import { type Route, routeKey } from "./route.ts";
import { type CertificateState, certificateIdOf, decideTls, type HostTls, type TlsDecision } from "./tls.ts";

export interface CompileInput {
  /** The routes of one gateway, in any order. */
  readonly routes: readonly Route[];
  readonly portsOf: PortsOf;
  readonly certificateOf: (route: Route, hostname: string) => CertificateState;
  /** Resolves a route. Default: `resolveRoute`, without a cache. */
  readonly resolve?: typeof resolveRoute;
}

/** The configuration of one gateway. */
export interface CompiledGateway {
  /** The hosts by hostname. */
  readonly hosts: ReadonlyMap<string, GatewayHost>;
  /** The certificates by id. */
  readonly certificates: ReadonlyMap<string, GatewayCertificate>;
  /** The findings by key of the route. */
  readonly findings: ReadonlyMap<string, RouteFindings>;
  /** The hostnames that need a certificate of the cluster's issuer. */
  readonly requested: ReadonlySet<string>;
}

/** The declarations for one hostname itself, without those of wildcards that cover it. */
interface Own {
  readonly routes: readonly Route[];
  readonly rules: OwnRules;
  readonly tls: TlsDecision;
}

/** Compiles all routes of a gateway. Their order does not matter. */
export function compileGateway(input: CompileInput): CompiledGateway {
  const { routes, portsOf, certificateOf, resolve = resolveRoute } = input;
  const findings = new Findings(routes);
  const resolved = new Map(routes.map((route) => [routeKey(route), resolve(route, portsOf)] as const));
  for (const route of routes) findings.refs(route, resolved.get(routeKey(route))?.problems ?? []);
  const own = new Map<string, Own>();
  for (const [hostname, naming] of byHostname(routes)) {
    const entries = naming.flatMap((route) => resolved.get(routeKey(route))?.entries ?? []);
    own.set(hostname, {
      routes: naming,
      rules: orderEntries(entries),
      tls: decideTls({
        hostname,
        routes: naming,
        certificateOf,
        passthroughOf: (route) => resolved.get(routeKey(route))?.passthrough ?? [],
      }),
    });
  }
  const hosts = new Map<string, GatewayHost>();
  const certificates = new Map<string, GatewayCertificate>();
  const names = new Set(own.keys());
  for (const [hostname, declared] of own) {
    const covering = coveringHostnames(hostname, names).flatMap((name) => own.get(name) ?? []);
    const tls = effectiveTls(declared.tls.tls, covering);
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
    findings.host(hostname, { ...declared, effective: entries, serving: tls });
  }
  return { hosts, certificates, findings: findings.all(), requested: requestedHostnames(own) };
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
  // Findings are reported in this order.
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Returns the TLS settings of a hostname. If its own routes set none, or have no certificate, those
 * of the nearest covering hostname apply.
 */
function effectiveTls(own: HostTls, covering: readonly Own[]): HostTls {
  if (own.mode === "Passthrough" || (own.mode === "Terminate" && own.certificate !== undefined)) return own;
  for (const { tls } of covering) {
    if (tls.tls.mode === "Terminate" && tls.tls.certificate !== undefined) return tls.tls;
    if (tls.tls.mode === "Passthrough" && own.mode === "none") return tls.tls;
  }
  return own;
}

/**
 * Returns a rule for the gateway. A rule that requires TLS is never served in plain text; without a
 * certificate it is not served at all.
 */
function ruleOf({ route, rule }: Entry, encrypted: boolean): GatewayHost["rules"][number] {
  if (route.tls === undefined || encrypted) return rule;
  return { ...rule, backends: [], filters: [], timeoutMs: 0n };
}

function requestedHostnames(own: ReadonlyMap<string, Own>): ReadonlySet<string> {
  const requested = new Set<string>();
  for (const [hostname, { routes, tls }] of own) {
    if (tls.tls.mode !== "Terminate") continue;
    const { certificate } = tls.tls;
    const issued = `issued/${hostname}`;
    const asked = routes.some(
      (route) => route.tls?.mode === "Terminate" && certificateIdOf(route, hostname) === issued,
    );
    if (asked && (certificate === undefined || certificate.id === issued)) requested.add(hostname);
  }
  return requested;
}
