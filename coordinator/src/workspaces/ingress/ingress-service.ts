import type { BuiltInService } from "../../model/built-in-service.ts";
import type { WorkspaceSettings } from "../settings.ts";

/** The service in the namespace of workspaces to which routes of gateways lead. */
const INGRESS_SERVICE = "workspace-ingress";

/** Returns the ingress as a service, or none if gateways should not reach it. */
export function ingressServices({ enabled, namespace, ingress }: WorkspaceSettings): BuiltInService[] {
  if (!enabled || ingress === undefined || ingress.gatewayAddresses.length === 0) return [];
  const port = Number(ingress.listen.slice(ingress.listen.lastIndexOf(":") + 1));
  return [{ namespace, name: INGRESS_SERVICE, port, addresses: ingress.gatewayAddresses }];
}
