import { type Config, ConfigError, portRange } from "./config.ts";
import type { AddressRanges } from "./control/addresses/controller.ts";
import { parseIpRange } from "./ip/ip-range.ts";

/** Returns the configured ranges of service addresses. Throws ConfigError. */
export function addressRanges({ services }: Pick<Config, "services">): AddressRanges {
  const virtualIps = virtualIpRanges({ services }).flatMap((text) => parseIpRange(text) ?? []);
  const nodePorts = portRange(services.nodePorts);
  const loadBalancerIps = services.loadBalancerIps.flatMap((text) => parseIpRange(text) ?? []);
  if (virtualIps.length === 0 || nodePorts === undefined)
    throw new ConfigError("services: virtualIps and nodePorts must be ranges");
  return { virtualIps, loadBalancerIps, nodePorts };
}

/** Returns the configured ranges of virtual IPs as texts. */
export function virtualIpRanges({ services }: Pick<Config, "services">): string[] {
  return [services.virtualIps, ...(services.virtualIps6 === undefined ? [] : [services.virtualIps6])];
}
