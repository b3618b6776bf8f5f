import type { NodeEntry } from "../state/entries.ts";
import { DEFAULT_GATEWAY } from "./route.ts";

/** A label of nodes that serve a gateway. Its value is the gateway's name. */
export const GATEWAY_LABEL = "forage.dev/gateway";

/**
 * Returns the name of the gateway that the node serves; undefined: none. Gateways receive the private keys of routes, so only the
 * operator and the join token can set the label; what the agent reports doesn't count. Pure.
 */
export function gatewayOfNode(node: NodeEntry | undefined): string | undefined {
  const value = node?.record.labels[GATEWAY_LABEL];
  if (value === undefined || value === "false") return undefined;
  return value === "" || value === "true" ? DEFAULT_GATEWAY : value;
}
