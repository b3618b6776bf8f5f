import type { Log } from "@forage/common/log";
import { Sealed } from "@forage/proto/forage/store/v1/store";
import { decodeRecord, encodeRecord } from "../model/codec.ts";
import { AUTHORITY_KEY } from "../model/keys.ts";
import type { Vault } from "../objects/vault.ts";
import { type Store, StoreError, type StoreErrorCode } from "../store/index.ts";
import type { AuthorityState } from "./authority.ts";
import type { ClusterAuthority } from "./cluster-authority.ts";

export interface SharedAuthorityOptions {
  readonly store: Store;
  /**
   * The epoch, which grows with each restore and each move of the store. A state of an earlier
   * epoch may be older than the files.
   */
  readonly epoch: number;
  readonly vault: Pick<Vault, "sealText" | "openText">;
  readonly authority: ClusterAuthority;
}

/** The content of the record, which is encrypted JSON. */
interface StoredState extends AuthorityState {
  readonly epoch: number;
}

/** Adopts the stored state, and writes each further step to the store. Used by the leader. */
export async function leadAuthority(options: SharedAuthorityOptions): Promise<void> {
  await adoptStored(options);
  options.authority.shareWith((state) => write(options, state));
}

/**
 * Adopts the stored state. If no replacement has begun in this epoch, the authority in the files is
 * kept.
 */
export async function adoptStored({ store, epoch, vault, authority }: SharedAuthorityOptions): Promise<void> {
  const stored = await store.get(AUTHORITY_KEY);
  if (stored === undefined) return;
  const text = vault.openText(decodeRecord(Sealed, AUTHORITY_KEY, stored.value), AUTHORITY_KEY);
  const state = JSON.parse(text) as StoredState;
  if (state.epoch === epoch) await authority.adopt(state);
}

export interface FollowAuthorityOptions extends SharedAuthorityOptions {
  /**
   * Logs a step that can't be adopted. The leader waits for this coordinator, and repeats the step
   * with the next `ca roll`.
   */
  readonly log: Pick<Log, "error">;
  readonly onFatal: (error: unknown) => void;
}

/**
 * Adopts each step of the leader. Returns a function that ends this, and resolves when it has
 * ended.
 */
export function followAuthority(options: FollowAuthorityOptions): () => Promise<void> {
  const { onFatal } = options;
  const over = new AbortController();
  const following = follow(options, over.signal).catch((error: unknown) => {
    if (!isStoreError(error, ["CLOSED"])) onFatal(error);
  });
  return () => {
    over.abort();
    return following;
  };
}

async function follow(options: FollowAuthorityOptions, signal: AbortSignal): Promise<void> {
  const { store, log } = options;
  const adopt = (): Promise<void> =>
    adoptStored(options).catch((err: unknown) => {
      if (err instanceof StoreError) throw err;
      log.error({ event: "authority-not-followed", err });
    });
  while (!signal.aborted) {
    const { revision } = store;
    try {
      await adopt();
      for await (const _ of store.watch(AUTHORITY_KEY, revision + 1, signal)) await adopt();
    } catch (error) {
      if (!isStoreError(error, ["COMPACTED", "SLOW"])) throw error;
    }
  }
}

function isStoreError(error: unknown, codes: readonly StoreErrorCode[]): boolean {
  return error instanceof StoreError && codes.includes(error.code);
}

async function write({ store, epoch, vault }: SharedAuthorityOptions, state: AuthorityState): Promise<void> {
  const text = JSON.stringify({ ...state, epoch } satisfies StoredState);
  const value = encodeRecord(Sealed, vault.sealText(text, AUTHORITY_KEY));
  await store.txn([], [{ type: "put", key: AUTHORITY_KEY, value }]);
}
