import type { ExaminedPeer } from "@forage/proto/forage/agent/v1/agent";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";

/** With every node examined, each is tried from this number of others: one of them with a fault of its own proves nothing. */
const PEERS_PER_NODE = 4;

/**
 * Returns the other nodes that a node is to try, from the records: the next ones in a ring of all nodes that are ready. Each has a port on
 * which a ready pod is served, if there is one.
 */
export function choosePeers(
  node: string,
  state: Pick<ClusterView, "nodes" | "podsOnNode">,
): readonly ExaminedPeer[] {
  const ring = state
    .nodes()
    .filter((it) => it.name === node || (it.health.ready && addressOf(it) !== ""))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const at = ring.findIndex(({ name }) => name === node);
  const others = [...ring.slice(at + 1), ...ring.slice(0, Math.max(0, at))];
  return others.slice(0, PEERS_PER_NODE).map((peer) => ({
    ...{ node: peer.name, address: addressOf(peer), port: servedPort(peer.name, state) },
  }));
}

function addressOf({ report }: NodeEntry): string {
  return report?.report?.address ?? "";
}

function servedPort(node: string, state: Pick<ClusterView, "podsOnNode">): number {
  for (const { status } of state.podsOnNode(node)) {
    const port = status?.ready ? status.hostPorts.find(({ protocol }) => protocol === "TCP") : undefined;
    if (port !== undefined) return port.hostPort;
  }
  return 0;
}
