import type { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { rewriteNode } from "../../control/eviction/record-node-conditions.ts";
import { CoordinatorError } from "../../errors.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";

/** The limit of attempts. A joining agent or a controller may write the record at the same time, but rarely this often. */
const MAX_ATTEMPTS = 5;

/**
 * Changes the node's record, and returns the changed node. @throws CoordinatorError NOT_FOUND, or CONFLICT if the record
 * changes repeatedly.
 */
export async function changeNode(
  name: string,
  { store, state }: { readonly store: Store; readonly state: ClusterView },
  change: (node: NodeEntry) => NodeRecord,
): Promise<NodeEntry> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const node = state.node(name);
    if (node === undefined) throw noSuchNode(name);
    const { compares, ops } = rewriteNode(node, change(node));
    const result = await store.txn(compares, ops);
    await state.reached(result.revision);
    if (!result.succeeded) continue;
    const now = state.node(name);
    if (now !== undefined) return now;
  }
  throw new CoordinatorError("CONFLICT", "other requests changed the node's record repeatedly; try again");
}

export function noSuchNode(name: string): CoordinatorError {
  return new CoordinatorError("NOT_FOUND", `there is no node "${name}"`);
}
