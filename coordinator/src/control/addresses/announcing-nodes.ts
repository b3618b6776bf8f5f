import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry } from "../../state/entries.ts";
import { labelOf } from "../../state/node-labels.ts";
import { serves } from "../../state/serves.ts";
import { type AnnouncingNode, parseNetwork } from "./node-networks.ts";

/**
 * The label that excludes a node from announcing load balancer addresses. As in Kubernetes, any value except "false"
 * counts.
 */
export const EXCLUDE_LABEL = "forage.dev/exclude-from-load-balancers";

/** Returns the node's state and networks for announcing addresses. Undefined: the node may not announce any. */
export function announcingNode(node: NodeEntry | undefined): AnnouncingNode | undefined {
  if (node === undefined || !mayAnnounce(node)) return undefined;
  const { record, report } = node;
  return {
    name: node.name,
    // The node's own Ready condition doesn't count: an agent that starts isn't ready for a moment, while its host's kernel
    // still answers.
    ready: serves(node),
    cordoned: record.unschedulable,
    draining: record.drain !== undefined,
    networks: (report?.report?.networks ?? []).flatMap((it) => parseNetwork(it) ?? []),
  };
}

/**
 * Returns the name of the node for each address of a host. Services never get such an address, even if the operator's pools
 * contain it.
 */
export function hostAddresses(state: ClusterView): ReadonlyMap<string, string> {
  return new Map(state.nodes().flatMap((node) => ownAddresses(node).map((ip) => [ip, node.name] as const)));
}

/** Returns the addresses at which the node is reachable. */
export function ownAddresses(node: NodeEntry | undefined): string[] {
  const { address = "", addresses = [] } = node?.report?.report ?? {};
  return [...new Set([address, ...addresses])].filter((ip) => ip !== "");
}

function mayAnnounce(node: NodeEntry): boolean {
  return !node.record.revoked && (labelOf(node, EXCLUDE_LABEL) ?? "false") === "false";
}
