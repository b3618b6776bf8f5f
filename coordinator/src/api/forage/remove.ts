import { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { batches, type StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";

const MAX_TRIES = 8;

/**
 * Marks the resources for removal. Their pods are stopped gracefully, and the records are removed with the last of them.
 * Resources that are marked already don't change, so the call can be repeated.
 */
export async function markDeleting(
  choose: () => readonly ResourceEntry[],
  { store, state, by }: { readonly store: Store; readonly state: ClusterView; readonly by: string },
): Promise<readonly ResourceEntry[]> {
  const marked: ResourceEntry[] = [];
  for (let tries = 0; tries < MAX_TRIES; ) {
    const open = choose().filter((entry) => !entry.record.deleting);
    const [part] = batches(open.map((entry) => deletion(entry, by)));
    if (part === undefined) return marked;
    const result = await store.txn(
      part.flatMap(({ compares }) => compares),
      part.flatMap(({ ops }) => ops),
    );
    await state.reached(result.revision);
    if (result.succeeded) marked.push(...part.map(({ entry }) => entry));
    else tries++;
  }
  throw new CoordinatorError("CONFLICT", "other requests changed the same resources repeatedly; try again");
}

function deletion(entry: ResourceEntry, by: string): StoreWrite & { readonly entry: ResourceEntry } {
  const value = encodeRecord(ResourceRecord, { ...entry.record, deleting: true, deletedBy: by });
  return {
    entry,
    compares: [{ type: "mod-revision", key: entry.key, revision: entry.revision }],
    ops: [{ type: "put", key: entry.key, value }],
  };
}
