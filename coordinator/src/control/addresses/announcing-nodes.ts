import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry } from "../../state/entries.ts";
import { labelOf } from "../../state/node-labels.ts";
import { serves } from "../../state/serves.ts";
import { type AnnouncingNode, parseNetwork } from "./node-networks.ts";

/** The label of nodes that never announce load balancer addresses. As in Kubernetes, any value counts except "false". */
export const EXCLUDE_LABEL = "forage.dev/exclude-from-load-balancers";

/** Returns what the node announces by; undefined: it announces nothing. */
export function announcingNode(node: NodeEntry | undefined): AnnouncingNode | undefined {
  if (node === undefined || !mayAnnounce(node)) return undefined;
  const { record, report } = node;
  return {
    name: node.name,
    // Not by the node's own word: an agent that starts isn't ready for a moment, while its host's kernel goes on.
    ready: serves(node),
    cordoned: record.unschedulable,
    draining: record.drain !== undefined,
    networks: (report?.report?.networks ?? []).flatMap((it) => parseNetwork(it) ?? []),
  };
}

/** Returns the nodes' own addresses. A service never gets one of these, whatever pool the operator configured. */
export function hostAddresses(state: ClusterView): ReadonlyMap<string, string> {
  return new Map(state.nodes().flatMap((node) => ownAddresses(node).map((ip) => [ip, node.name] as const)));
}

/** Returns the addresses by which others reach the node. */
export function ownAddresses(node: NodeEntry | undefined): string[] {
  const { address = "", addresses = [] } = node?.report?.report ?? {};
  return [...new Set([address, ...addresses])].filter((ip) => ip !== "");
}

function mayAnnounce(node: NodeEntry): boolean {
  return !node.record.revoked && (labelOf(node, EXCLUDE_LABEL) ?? "false") === "false";
}
