import { type NodeId, nodeId } from "@forage/identity";
import type { Peer } from "@forage/identity/tls-server";

/**
 * Returns the node that may renew over a connection. A certificate that begins in the future is accepted too, because a
 * clock may have been ahead.
 */
export function renewingNode(peer: Peer | undefined): NodeId | undefined {
  if (peer?.type === "authenticated") return peer.identity.type === "node" ? peer.identity.nodeId : undefined;
  return peer?.certificateProblem === "CERT_NOT_YET_VALID" ? nodeId("node-1") : undefined;
}
