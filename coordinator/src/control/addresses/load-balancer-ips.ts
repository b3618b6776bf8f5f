import type { IpRange } from "../../ip/ip-range.ts";

export interface AddressRequest {
  /** The requested addresses in canonical notation, at most one for each family. */
  readonly requested: readonly string[];
  /** The addresses that the service has. */
  readonly before: readonly string[];
  /** The position at which the search for free addresses begins. */
  readonly seed: number;
}

export interface LoadBalancerIps {
  readonly ips: readonly string[];
  /** One message for each missing address. */
  readonly problems: readonly string[];
}

/** The limit of addresses that one search tries, because IPv6 ranges are too large to search. */
const MAX_TRIES = 65_536;

/**
 * Returns an address of each family in the pool. A service keeps its address unless it requests another one, or the
 * operator removes the address from the pool. Pure.
 */
export function loadBalancerIpsFor(
  { requested, before, seed }: AddressRequest,
  pool: readonly IpRange[],
  ownerOf: (ip: string) => string | undefined,
): LoadBalancerIps {
  if (pool.length === 0) return { ips: [], problems: [NO_POOL] };
  const problems: string[] = [];
  const ips = ([4, 6] as const).flatMap((family): string[] => {
    const ranges = pool.filter((range) => range.family === family);
    const isIn = (ip: string): boolean => ranges.some((range) => range.has(ip));
    const kept = before.find(isIn);
    if (ranges.length === 0) return [];
    const choice = requested.find(isIn);
    const owner = choice === undefined || choice === kept ? undefined : ownerOf(choice);
    if (owner !== undefined) problems.push(`load balancer IP ${choice} belongs to ${owner}`);
    else if (choice !== undefined) return [choice];
    const ip = kept ?? firstFree(ranges, seed, ownerOf);
    if (ip === undefined) problems.push(`no load balancer IP is left in ${textOf(ranges)}`);
    return ip === undefined ? [] : [ip];
  });
  for (const ip of requested.filter((it) => !pool.some((range) => range.has(it))))
    problems.push(`load balancer IP ${ip} is not in ${textOf(pool)}`);
  return { ips, problems };
}

export const NO_POOL =
  "there is no address pool for services of type LoadBalancer: set services.loadBalancerIps in the coordinator's configuration";

function firstFree(
  ranges: readonly IpRange[],
  seed: number,
  ownerOf: (ip: string) => string | undefined,
): string | undefined {
  for (const range of ranges) {
    for (let step = 0; step < Math.min(range.size, MAX_TRIES); step++) {
      const ip = range.at((seed + step) % range.size);
      if (ownerOf(ip) === undefined) return ip;
    }
  }
  return undefined;
}

function textOf(ranges: readonly IpRange[]): string {
  return ranges.map(({ text }) => text).join(", ");
}
