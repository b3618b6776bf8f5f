import { CHAIN_START, type Chain, entryKey } from "../format/entry-codec.ts";
import { encodeStoreMeta, STORE_KEY, type StoreMeta } from "../format/meta-codec.ts";
import type { Revision } from "../store.ts";
import type { Lead } from "./acquire-lead.ts";
import type { EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { retryUntilAnswered } from "./insist.ts";
import { HEAD_KEY, LEADER_KEY } from "./layout.ts";
import { lost } from "./leadership.ts";
import type { EtcdStoreOptions } from "./options.ts";

export interface StoreOpening extends Lead {
  readonly options: Pick<EtcdStoreOptions, "etcd">;
  readonly id: string;
}

/**
 * Increments the number of openings, removes log entries that an earlier leader left after the head, and rewrites the head
 * for this opening.
 */
export function beginWriting(
  opening: StoreOpening,
  headRevision: bigint,
  meta: StoreMeta,
  { head, chains }: { readonly head: Revision; readonly chains: readonly Chain[] },
): Promise<bigint> {
  return writeFirst(opening, headRevision, [
    { type: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { type: "delete", from: entryKey(head + 1), to: "l0" },
    { type: "put", key: HEAD_KEY, value: headOf(meta.id, head, chains.at(-1) ?? CHAIN_START, opening.id) },
  ]);
}

/** Writes before the journal exists. Returns etcd's revision of the head. */
export async function writeFirst(
  { options: { etcd }, calls, leadership }: StoreOpening,
  headRevision: bigint,
  ops: readonly EtcdOp[],
): Promise<bigint> {
  const head = ops.find((op) => op.type === "put" && op.key === HEAD_KEY);
  const result = await retryUntilAnswered(
    () =>
      etcd.txn({
        compares: [
          { type: "create-revision", key: LEADER_KEY, revision: leadership.createRevision },
          { type: "mod-revision", key: HEAD_KEY, revision: headRevision },
        ],
        ops,
        otherwise: [LEADER_KEY, HEAD_KEY],
      }),
    calls,
  );
  if (result.succeeded) return head === undefined ? headRevision : result.revision;
  const [leader, found] = result.found;
  // An earlier attempt without a response may have taken effect.
  const isMoved = found !== undefined && found.modRevision !== headRevision;
  if (head?.type === "put" && isMoved && found.value.equals(head.value)) return found.modRevision;
  throw lost(leader);
}

export function headOf(store: string, revision: number, chain: Chain, opening: string): Buffer {
  return encodeHead({ store, revision, chain, opening });
}
