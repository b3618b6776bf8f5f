import type { GatewayChallenge, GatewayHost } from "@forage/proto/forage/agent/v1/agent";
import type { Json, JsonObject } from "./json.ts";
import { redirectOf } from "./route-filters.ts";
import { routeOf } from "./routes.ts";

export interface Ports {
  readonly http: number;
  readonly https: number;
}

const CHALLENGE_PATH = "/.well-known/acme-challenge/";
const KEEP = { hostname: "", port: 0, path: "" };

/**
 * Returns the routes for plain HTTP. Hosts with a certificate redirect to HTTPS, except for responses to ACME
 * challenges.
 */
export function plainRoutes(
  hosts: ReadonlyMap<string, GatewayHost>,
  challenges: readonly GatewayChallenge[],
  ports: Ports,
): JsonObject {
  const names = new Set([...hosts.keys(), ...challenges.map(({ hostname }) => hostname)]);
  const virtualHosts = [...names].sort().map((name) => {
    const proofs = challenges.filter(({ hostname }) => hostname === name).map(challengeRoute);
    // Without this, a name that has only a challenge would hide the wildcard host that serves it.
    const host = hosts.get(name) ?? hostFor(name, hosts);
    return virtualHost(name, [...proofs, ...(host === undefined ? [] : plainRules(host, name, ports))]);
  });
  return routeConfiguration("http", virtualHosts);
}

/** Returns the routes for HTTPS. */
export function encryptedRoutes(hosts: ReadonlyMap<string, GatewayHost>, ports: Ports): JsonObject {
  const served = [...hosts.values()].filter(endsTls).sort((a, b) => (a.hostname < b.hostname ? -1 : 1));
  return routeConfiguration(
    "https",
    served.map(({ hostname, rules }) => {
      const at = { scheme: "https", port: ports.https, hostname } as const;
      return virtualHost(
        hostname,
        rules.map((rule) => routeOf(rule, at)),
      );
    }),
  );
}

/** Reports whether the gateway itself decrypts this host's connections. */
export function endsTls(host: GatewayHost): boolean {
  return host.certificate !== "" && host.passthrough.length === 0;
}

function plainRules(host: GatewayHost, hostname: string, ports: Ports): JsonObject[] {
  const at = { scheme: "http", port: ports.http, hostname } as const;
  if (!endsTls(host)) return host.rules.map((rule) => routeOf(rule, at));
  const port = ports.https === 443 ? 0 : ports.https;
  const redirect = redirectOf({ ...KEEP, scheme: "https", port, statusCode: 308 }, at);
  return [{ name: "https", match: { prefix: "/" }, redirect }];
}

function challengeRoute({ token, keyAuthorization }: GatewayChallenge): JsonObject {
  return {
    name: "acme",
    match: { path: CHALLENGE_PATH + token },
    direct_response: { status: 200, body: { inline_string: keyAuthorization } },
  };
}

/** Returns the host that serves a name without a host of its own: the longest matching wildcard, or `*`. */
function hostFor(name: string, hosts: ReadonlyMap<string, GatewayHost>): GatewayHost | undefined {
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const host = hosts.get(`*${name.slice(dot)}`);
    if (host !== undefined) return host;
  }
  return hosts.get("*");
}

function virtualHost(hostname: string, routes: readonly JsonObject[]): JsonObject {
  return { name: hostname, domains: [hostname], routes };
}

function routeConfiguration(name: string, virtualHosts: readonly Json[]): JsonObject {
  return {
    "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    name,
    // The port is ignored for matching; it stays in the header, because backends use it in links.
    ignore_port_in_host_matching: true,
    response_headers_to_remove: ["x-envoy-upstream-service-time"],
    virtual_hosts: virtualHosts,
  };
}
