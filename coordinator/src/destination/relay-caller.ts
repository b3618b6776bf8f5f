import type { Metadata } from "@grpc/grpc-js";
import type { Caller } from "../rpc/caller.ts";

/**
 * The metadata key with the namespace of the pod whose look-up an agent relays. It is absent for
 * processes on the node's own network.
 */
export const RELAY_NAMESPACE_KEY = "forage-namespace";

/**
 * Returns the effective caller of a look-up on a node's connection. For a pod's namespace it may
 * read that namespace, if the node runs pods in it. For the node's own processes it may read all
 * namespaces, because a node receives all endpoints anyway. Callers other than nodes are returned
 * unchanged.
 */
export function relayCaller(
  caller: Caller,
  metadata: Metadata,
  runsPodsOf: (node: string, namespace: string) => boolean,
): Caller {
  if (caller.type !== "node") return caller;
  const namespace = metadata.get(RELAY_NAMESPACE_KEY)[0];
  const name = `node ${caller.nodeId}`;
  if (namespace === undefined)
    return { type: "user", name, grants: [{ role: "destination-reader", namespaces: "*" }] };
  const allowed = runsPodsOf(caller.nodeId, String(namespace)) ? [String(namespace)] : [];
  return { type: "user", name, grants: [{ role: "destination-reader", namespaces: allowed }] };
}
