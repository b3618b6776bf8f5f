import type { ExaminedPeer } from "@forage/proto/forage/agent/v1/agent";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";

/**
 * The number of other nodes from which each node is tested if all are examined: a problem of one of
 * them must not determine the result.
 */
const PEERS_PER_NODE = 4;

/**
 * Returns the other nodes that a node should test: the next ones in a ring of all ready nodes. Each
 * has a port of a ready pod if there is one.
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
