import type { BuiltInService } from "../../model/built-in-service.ts";
import type { WorkspaceSettings } from "../settings.ts";

/** The name of the built-in service to which a gateway's routes can refer. */
const INGRESS_SERVICE = "workspace-ingress";

/** Returns the ingress as a built-in service. Empty if no addresses for gateways are configured. */
export function ingressServices({ enabled, namespace, ingress }: WorkspaceSettings): BuiltInService[] {
  if (!enabled || ingress === undefined || ingress.gatewayAddresses.length === 0) return [];
  const port = Number(ingress.listen.slice(ingress.listen.lastIndexOf(":") + 1));
  return [{ namespace, name: INGRESS_SERVICE, port, addresses: ingress.gatewayAddresses }];
}
