import type { Metadata } from "@grpc/grpc-js";
import type { Caller } from "../rpc/caller.ts";

/** Set by an agent that relays a look-up: the namespace of the pod that asks. Absent: a process on the node's own network. */
export const RELAY_NAMESPACE_KEY = "forage-namespace";

/**
 * Returns the caller that a look-up on a node's connection counts as: a reader of the pod's namespace, if the node runs pods of
 * it, and for the node's own processes a reader of all, since a node receives every service's endpoints anyway. Callers that are
 * no nodes stay as they are.
 */
export function relayCaller(
  caller: Caller,
  metadata: Metadata,
  runsPodsOf: (node: string, namespace: string) => boolean,
): Caller {
  if (caller.kind !== "node") return caller;
  const namespace = metadata.get(RELAY_NAMESPACE_KEY)[0];
  const name = `node ${caller.nodeId}`;
  if (namespace === undefined)
    return { kind: "user", name, grants: [{ role: "destination-reader", namespaces: "*" }] };
  const allowed = runsPodsOf(caller.nodeId, String(namespace)) ? [String(namespace)] : [];
  return { kind: "user", name, grants: [{ role: "destination-reader", namespaces: allowed }] };
}
