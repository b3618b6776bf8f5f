import type { GatewayHost, GatewayRule } from "@forage/proto/forage/agent/v1/agent";
import type { HeaderMatch, RouteMatch } from "@forage/proto/forest/v1/forage";

export interface Asked {
  readonly host: string;
  readonly path: string;
  readonly method?: string;
  /** Headers by lowercase name. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/** Returns the rule with which a gateway answers: that of the nearest host, and the first match. */
export function ruleFor(hosts: ReadonlyMap<string, GatewayHost>, asked: Asked): GatewayRule | undefined {
  const host = hosts.get(nearestHost([...hosts.keys()], asked.host) ?? "");
  return host?.rules.find(({ match }) => match === undefined || holds(match, asked));
}

/** Returns the hostname under which a request to the host is served. */
export function nearestHost(hostnames: readonly string[], host: string): string | undefined {
  const covering = hostnames.filter((hostname) => covers(hostname, host));
  return covering.sort((a, b) => nearness(b) - nearness(a))[0];
}

export function covers(hostname: string, host: string): boolean {
  if (hostname === "*") return true;
  return hostname.startsWith("*.") ? host.endsWith(hostname.slice(1)) : hostname === host;
}

/**
 * Returns a number that is larger for nearer hostnames: full names before wildcards, longer
 * wildcards before shorter ones.
 */
export function nearness(hostname: string): number {
  if (hostname === "*") return 0;
  return hostname.startsWith("*.") ? hostname.length : 1_000;
}

export function holds({ path, headers, queryParams, method }: RouteMatch, asked: Asked): boolean {
  if (method !== "" && method !== (asked.method ?? "GET")) return false;
  const named = (list: readonly HeaderMatch[], given: Readonly<Record<string, string>> = {}): boolean =>
    list.every(({ type, name, value }) => {
      const found = given[name];
      if (found === undefined) return false;
      return type === "RegularExpression" ? new RegExp(`^(?:${value})$`).test(found) : found === value;
    });
  if (
    !named(
      headers.map((it) => ({ ...it, name: it.name.toLowerCase() })),
      asked.headers,
    )
  )
    return false;
  if (!named(queryParams, asked.query)) return false;
  if (path === undefined) return true;
  switch (path.type) {
    case "Exact":
      return asked.path === path.value;
    case "RegularExpression":
      return new RegExp(`^(?:${path.value})$`).test(asked.path);
    default: {
      const prefix = path.value.replace(/\/+$/, "");
      return prefix === "" || asked.path === prefix || asked.path.startsWith(`${prefix}/`);
    }
  }
}
