/**
 * Returns why no certificate can name the hostname: "*" stands for all hosts without a route of their own. Undefined if a
 * certificate can.
 */
export function unnameable(hostname: string): string | undefined {
  if (hostname !== "" && hostname !== "*") return undefined;
  return "no certificate can be made for every hostname: name hostnames in the route, or a secret in tls.certificate_ref";
}
