import { batches, type StoreWrite } from "../model/batches.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

/**
 * Makes the writes in as few transactions as the store's limits allow, and waits until the view holds them. A transaction whose
 * compares fail changes nothing: what changed in between wakes the loop that writes. A transaction that the store rejects doesn't
 * keep the others from being written.
 *
 * @throws the first error, after all transactions were tried.
 */
export async function writeBatches(
  writes: readonly StoreWrite[],
  { store, state }: { readonly store: Store; readonly state: ClusterView },
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const part of batches(writes)) {
    try {
      const { revision } = await store.txn(
        part.flatMap(({ compares }) => compares),
        part.flatMap(({ ops }) => ops),
      );
      await state.reached(revision);
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}
