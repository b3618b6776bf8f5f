import type { Store } from "../store/index.ts";
import type { ClusterView } from "./cluster-view.ts";

/** The number of records that are read at once when the view is loaded. */
const PAGE_SIZE = 1000;

/** Loads the view from the store. Returns a function that keeps it up to date until the signal aborts. */
export async function loadClusterView(
  store: Store,
  state: ClusterView,
): Promise<(signal: AbortSignal) => Promise<void>> {
  const at = store.revision;
  for (let after: string | undefined, more = true; more; ) {
    const page = await store.range("", { at, limit: PAGE_SIZE, ...(after !== undefined && { after }) });
    state.load(page.records, page.more ? 0 : at);
    after = page.records.at(-1)?.key;
    more = page.more;
  }
  return async (signal) => {
    for await (const batch of store.watch("", at + 1, signal)) state.apply(batch.events, batch.revision);
  };
}
