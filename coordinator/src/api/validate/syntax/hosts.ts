import { isIP, isIPv4, isIPv6 } from "node:net";
import { dnsSubdomainProblem } from "./names.ts";

/** The functions return what is wrong with the host, or undefined. */

/** Validates a full hostname, with labels of at most 63 characters. */
export function hostnameProblem(host: string): string | undefined {
  if (isIP(host.replace(/^\[|\]$/g, "")) !== 0) return "must be a name, not an address";
  const problem = dnsSubdomainProblem(host);
  if (problem !== undefined) return problem;
  if (host.split(".").some((label) => label.length > 63)) return "has a part of more than 63 characters";
  return undefined;
}

/** Validates a hostname, or `*.` and a hostname, which matches all names that end with it. */
export function hostnamePatternProblem(host: string): string | undefined {
  if (host === "*") return "must be a name or begin with '*.'; leave hostnames empty to match every host";
  const name = host.startsWith("*.") ? host.slice(2) : host;
  if (name.includes("*")) return "may have one '*', as its first label";
  return hostnameProblem(name);
}

export function addressProblem(address: string): string | undefined {
  // A zone would name an interface of a host that isn't known yet.
  return isIPv4(address) || (isIPv6(address) && !address.includes("%")) ? undefined : "must be an IP address";
}

/** Validates a server name or address, which becomes part of a mount's source. */
export function serverProblem(server: string): string | undefined {
  if (server === "") return "must not be empty";
  return isIP(server) !== 0 ? addressProblem(server) : hostnameProblem(server);
}
