import { formatIp, parseIp } from "@forage/common/ip";
import { LOAD_BALANCER_IP_ANNOTATION } from "../../service-network/service-state.ts";

/** Returns the valid addresses in a service's annotation, in canonical notation. */
export function requestedIps(annotations: Readonly<Record<string, string>>): string[] {
  const text = annotations[LOAD_BALANCER_IP_ANNOTATION];
  if (text === undefined) return [];
  return text.split(",").flatMap((part) => {
    const ip = parseIp(part.trim());
    return ip === undefined ? [] : formatIp(ip);
  });
}

/** Returns what is wrong with the annotation's value. Undefined: it is valid. */
export function requestedIpsProblem(text: string): string | undefined {
  const ips = text.split(",").map((part) => parseIp(part.trim()));
  if (ips.some((ip) => ip === undefined))
    return "must be an IP address, or one IPv4 and one IPv6 address separated by a comma";
  const families = new Set(ips.map((ip) => ip?.family));
  return families.size < ips.length ? "must contain at most one address of each family" : undefined;
}
