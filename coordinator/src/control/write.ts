import { CoordinatorError } from "../errors.ts";
import { batches, type StoreWrite } from "../model/batches.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

export interface WriteTarget {
  readonly store: Store;
  readonly state: ClusterView;
}

/** Combines writes into one that is stored completely or not at all. */
export function joined(writes: readonly StoreWrite[]): StoreWrite {
  return { compares: writes.flatMap((one) => one.compares), ops: writes.flatMap((one) => one.ops) };
}

/**
 * Makes a write and waits until the view contains it. Returns false, with nothing written, if one of its compares failed.
 */
export async function tryWrite(
  { compares, ops }: StoreWrite,
  { store, state }: WriteTarget,
): Promise<boolean> {
  const { revision, succeeded } = await store.txn(compares, ops);
  await state.reached(revision);
  return succeeded;
}

/**
 * Makes a write that was planned from the view, waits until the view contains it, and returns its revision. @throws
 * CoordinatorError CONFLICT if something that the plan used has changed; the loop then plans again.
 */
export async function write({ compares, ops }: StoreWrite, { store, state }: WriteTarget): Promise<number> {
  const { revision, succeeded } = await store.txn(compares, ops);
  await state.reached(revision);
  if (!succeeded) throw new CoordinatorError("CONFLICT", "a record has changed since it was read");
  return revision;
}

/**
 * Makes the writes in as few transactions as the store's limits allow, and waits until the view contains them. A
 * transaction whose compares fail is dropped: the change that made them fail wakes the loop that writes. A transaction that
 * the store rejects doesn't affect the others. @throws the first error, after all transactions were tried.
 */
export async function writeBatches(writes: readonly StoreWrite[], target: WriteTarget): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const part of batches(writes)) {
    try {
      await tryWrite(joined(part), target);
    } catch (error) {
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}
