import type { GatewayState, RouteState } from "@forage/proto/forage/operator/v1/operator";
import type { GatewayTable, RouteStatus } from "../../gateway/gateway-table.ts";
import { toTimestamp } from "../../model/timestamp.ts";

/** The source of the gateways' states. */
export type GatewayStatuses = Pick<GatewayTable, "statusOf" | "nodeState">;

export function routeView(status: RouteStatus): RouteState {
  return {
    gateway: status.gateway,
    hostnames: status.hostnames.map(
      ({ hostname, tls, certificate, expiresMs, matches, effectiveMatches }) => ({
        hostname,
        tls: tls === "none" ? "" : tls,
        certificate,
        certificateExpiresAt: expiresMs === undefined ? undefined : toTimestamp(expiresMs),
        matchesInForce: effectiveMatches,
        matches,
      }),
    ),
    conditions: status.conditions.map((condition) => ({ ...condition })),
    gateways: status.nodes.map(({ applied, ...node }) => ({ ...node, inForce: applied })),
  };
}

export function gatewayView(state: NonNullable<ReturnType<GatewayTable["nodeState"]>>): GatewayState {
  const { gateway, ready, upToDate, message, proxyVersion } = state;
  return { name: gateway, ready, upToDate, message, proxyVersion };
}
