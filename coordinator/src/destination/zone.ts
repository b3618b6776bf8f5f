import type { Endpoint } from "../endpoints/endpoints.ts";

/** A zone may carry this many times its fair share before its clients are sent everywhere. */
const OVERLOAD = 1.2;

export type ZoneLocality = "local" | "remote" | "unknown";

export function zoneLocality(clientZone: string, endpointZone: string): ZoneLocality {
  if (clientZone === "" || endpointZone === "") return "unknown";
  return clientZone === endpointZone ? "local" : "remote";
}

/**
 * Returns the endpoints that a client in this zone should use: those of its own zone, if every endpoint has a zone and the own
 * zone holds about its share; otherwise all. Proxies ignore weights, so leaving endpoints out is the only way to keep traffic
 * near. Pure.
 */
export function nearEndpoints(endpoints: readonly Endpoint[], clientZone: string): readonly Endpoint[] {
  if (clientZone === "" || endpoints.some(({ zone }) => zone === "")) return endpoints;
  const near = endpoints.filter(({ zone }) => zone === clientZone);
  const zones = new Set(endpoints.map(({ zone }) => zone)).size;
  return near.length * zones * OVERLOAD >= endpoints.length ? near : endpoints;
}
