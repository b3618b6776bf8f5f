/**
 * Returns the reason why no certificate can be issued for the hostname, such as "*", which means
 * all hosts without a route of their own. Undefined if one can.
 */
export function reasonNotIssuable(hostname: string): string | undefined {
  if (hostname !== "" && hostname !== "*") return undefined;
  return "no certificate can be made for every hostname: name hostnames in the route, or a secret in tls.certificate_ref";
}
