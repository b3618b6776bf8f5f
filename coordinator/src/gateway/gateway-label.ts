import type { NodeEntry } from "../state/entries.ts";
import { DEFAULT_GATEWAY } from "./route.ts";

/** The label of nodes that serve a gateway. Its value is the gateway's name. */
export const GATEWAY_LABEL = "forage.dev/gateway";

/**
 * Returns the name of the gateway that the node serves; undefined if it serves none. Gateways
 * receive the private keys of routes, so a label that the agent reports is ignored: only the
 * operator and the join token can set it.
 */
export function gatewayOfNode(node: NodeEntry | undefined): string | undefined {
  const value = node?.record.labels[GATEWAY_LABEL];
  if (value === undefined || value === "false") return undefined;
  return value === "" || value === "true" ? DEFAULT_GATEWAY : value;
}
