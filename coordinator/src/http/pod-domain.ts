import { type Config, hostPort } from "../config.ts";

/**
 * Returns the domain below which ports of pods are opened; undefined: they are not. Browsers resolve names below localhost to their
 * own host. With TLS they come from other hosts, and need a domain that leads here.
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
