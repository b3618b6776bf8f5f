import { batches, type Piece } from "../model/batches.ts";
import type { State } from "../state/state.ts";
import type { Store } from "../store/index.ts";

/**
 * Writes the pieces in as few transactions as the store's limits allow, and waits until the view holds them. A transaction whose
 * compares fail changes nothing: what changed in between wakes the loop that writes. A transaction that the store rejects doesn't
 * keep the others from being written.
 *
 * @throws the first error, after all transactions were tried.
 */
export async function writePieces(
  pieces: readonly Piece[],
  { store, state }: { readonly store: Store; readonly state: State },
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const part of batches(pieces)) {
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
