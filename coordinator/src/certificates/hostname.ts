/** What no certificate can name: "*" stands for every host that nobody has spoken for. Undefined: it can. */
export function unnameable(hostname: string): string | undefined {
  if (hostname !== "" && hostname !== "*") return undefined;
  return "no certificate can be made for every hostname: name hostnames in the route, or a secret in tls.certificate_ref";
}
