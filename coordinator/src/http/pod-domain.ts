import { type Config, hostPort } from "../config.ts";

/**
 * Returns the domain of the host names of opened pod ports; undefined if ports can't be opened.
 * Browsers resolve names below localhost to their own host. With TLS, browsers are on other hosts,
 * and a domain that resolves to the coordinator must be configured.
 */
export function podDomainOf({ podDomain, tls }: Config["http"]): string | undefined {
  if (podDomain === "off") return undefined;
  return podDomain ?? (tls ? undefined : "localhost");
}

/** Returns the names in the certificate of the HTTP port. */
export function httpNamesOf(http: Config["http"], names: readonly string[]): string[] {
  const podDomain = podDomainOf(http);
  return [hostPort(http.listen).host, ...names, ...(podDomain === undefined ? [] : [`*.${podDomain}`])];
}

/**
 * Returns the id of an opened port in a host name such as `p-0123456789.localhost:7601`; undefined
 * for other hosts.
 */
export function podPortId(host: string | undefined, domain: string): string | undefined {
  const name = (host ?? "").toLowerCase().replace(/:\d+$/, "");
  const end = `.${domain}`;
  if (!name.startsWith("p-") || !name.endsWith(end)) return undefined;
  const id = name.slice(0, -end.length);
  return id.includes(".") ? undefined : id;
}

/** Reports whether the Host header names an opened pod port. */
export function isPodHost(host: string | undefined, domain: string | undefined): boolean {
  return domain !== undefined && podPortId(host, domain) !== undefined;
}
