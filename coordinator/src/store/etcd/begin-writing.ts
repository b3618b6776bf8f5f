import { CHAIN_START, type Chain, entryKey } from "../format/entry-codec.ts";
import { encodeStoreMeta, STORE_KEY, type StoreMeta } from "../format/meta-codec.ts";
import type { Revision } from "../store.ts";
import type { EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { insist } from "./insist.ts";
import { HEAD_KEY, LEADER_KEY } from "./layout.ts";
import { lost } from "./leadership.ts";
import type { EtcdStoreOptions } from "./options.ts";
import type { Lead } from "./take-lead.ts";

export interface Opening extends Lead {
  readonly options: Pick<EtcdStoreOptions, "etcd">;
  readonly id: string;
}

/** Counts the opening, removes what an earlier leader left after the head, and makes the head this opening's own. */
export function beginWriting(
  opening: Opening,
  headRevision: bigint,
  meta: StoreMeta,
  { head, chains }: { readonly head: Revision; readonly chains: readonly Chain[] },
): Promise<bigint> {
  return writeFirst(opening, headRevision, [
    { kind: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { kind: "delete", from: entryKey(head + 1), to: "l0" },
    { kind: "put", key: HEAD_KEY, value: headOf(meta.id, head, chains.at(-1) ?? CHAIN_START, opening.id) },
  ]);
}

/** Writes before the journal does, and returns etcd's revision of the head. */
export async function writeFirst(
  { options: { etcd }, calls, leadership }: Opening,
  headRevision: bigint,
  ops: readonly EtcdOp[],
): Promise<bigint> {
  const head = ops.find((op) => op.kind === "put" && op.key === HEAD_KEY);
  const result = await insist(
    () =>
      etcd.txn({
        compares: [
          { kind: "createRevision", key: LEADER_KEY, revision: leadership.createRevision },
          { kind: "modRevision", key: HEAD_KEY, revision: headRevision },
        ],
        ops,
        otherwise: [LEADER_KEY, HEAD_KEY],
      }),
    calls,
  );
  if (result.succeeded) return head === undefined ? headRevision : result.revision;
  const [leader, found] = result.found;
  // A try without an answer may have been the one that took effect.
  const isMoved = found !== undefined && found.modRevision !== headRevision;
  if (head?.kind === "put" && isMoved && found.value.equals(head.value)) return found.modRevision;
  throw lost(leader);
}

export function headOf(store: string, revision: number, chain: Buffer, opening: string): Buffer {
  return encodeHead({ store, revision, chain, opening });
}
