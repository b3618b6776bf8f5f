import type { ClaimRef } from "@forage/proto/forage/agent/v1/agent";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

/** Reports whether the node was ordered to remove the claim's data. */
export function isRemoval(node: string, { namespace, name }: ClaimRef, state: ClusterView): boolean {
  const spec = state.objects.get({ namespace, kind: "claim", name })?.record.spec;
  return spec?.$case === "claim" && spec.value.deleting && spec.value.node === node;
}

/** Removes the records of claims whose data the node reports as removed, if it was ordered to remove them. */
export async function forgetClaims(
  node: string,
  claims: readonly ClaimRef[],
  { store, state }: { readonly store: Store; readonly state: ClusterView },
): Promise<void> {
  for (const { namespace, name } of claims) {
    const entry = state.objects.get({ namespace, kind: "claim", name });
    if (entry === undefined || !isRemoval(node, { namespace, name }, state)) continue;
    const compare = { type: "mod-revision", key: entry.key, revision: entry.revision } as const;
    const result = await store.txn([compare], [{ type: "delete", key: entry.key }]);
    await state.reached(result.revision);
  }
}
