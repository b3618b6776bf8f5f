import { formatIp, parseIp } from "@forage/common/ip";
import { LOAD_BALANCER_IP_ANNOTATION } from "../../service-network/service-state.ts";

/** Returns the addresses in a service's annotation, in the kernel's notation. Invalid ones are left out. */
export function wantedIps(annotations: Readonly<Record<string, string>>): string[] {
  const text = annotations[LOAD_BALANCER_IP_ANNOTATION];
  if (text === undefined) return [];
  return text.split(",").flatMap((part) => {
    const ip = parseIp(part.trim());
    return ip === undefined ? [] : formatIp(ip);
  });
}

/** Returns the fault in the annotation's value. Undefined if there is none. */
export function wantedIpsProblem(text: string): string | undefined {
  const ips = text.split(",").map((part) => parseIp(part.trim()));
  if (ips.some((ip) => ip === undefined))
    return "must be an IP address, or one of each family with a comma between";
  const families = new Set(ips.map((ip) => ip?.family));
  return families.size < ips.length ? "must be at most one address of each family" : undefined;
}
