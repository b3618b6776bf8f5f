import type { Endpoint } from "../endpoints/endpoints.ts";

/** The multiple of its fair share that a zone may receive before its clients use all zones. */
const OVERLOAD = 1.2;

export type ZoneLocality = "local" | "remote" | "unknown";

export function zoneLocality(clientZone: string, endpointZone: string): ZoneLocality {
  if (clientZone === "" || endpointZone === "") return "unknown";
  return clientZone === endpointZone ? "local" : "remote";
}

/**
 * Returns the endpoints for a client in the zone: those of its own zone if every endpoint has a
 * zone and the own zone has about its fair share, otherwise all. Proxies ignore weights, so
 * omitting endpoints is the only way to prefer near ones.
 */
export function nearEndpoints(endpoints: readonly Endpoint[], clientZone: string): readonly Endpoint[] {
  if (clientZone === "" || endpoints.some(({ zone }) => zone === "")) return endpoints;
  const near = endpoints.filter(({ zone }) => zone === clientZone);
  const zones = new Set(endpoints.map(({ zone }) => zone)).size;
  return near.length * zones * OVERLOAD >= endpoints.length ? near : endpoints;
}
