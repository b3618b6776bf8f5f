/**
 * The part of etcd that the store uses. Keys are texts. Revisions here are etcd's, which count all changes of the etcd
 * cluster and are independent of the store's revisions.
 *
 * All methods fail with EtcdError. A failed call may have taken effect.
 */
export interface Etcd {
  /** Reads the keys, linearizable or at the given revision. */
  range(query: EtcdQuery): Promise<EtcdRange>;
  /** Applies all operations in one revision if every compare holds, otherwise none. */
  txn(txn: EtcdTxn): Promise<EtcdTxnResult>;
  /** Compacts the history of the whole etcd cluster before the revision. */
  compact(revision: bigint): Promise<void>;
  grantLease(ttlSeconds: number): Promise<bigint>;
  /** Renews the lease. Returns false if it has ended. */
  keepLeaseAlive(id: bigint): Promise<boolean>;
  /** Ends the lease and deletes its keys. Does nothing if it has ended. */
  revokeLease(id: bigint): Promise<void>;
  /**
   * Resolves when the key has changed after the revision, or when etcd has compacted that revision. The caller then reads
   * the key again.
   */
  changed(key: string, after: bigint, signal: AbortSignal): Promise<void>;
  /** Returns the response of each endpoint, or its error. */
  members(): Promise<readonly EtcdMember[]>;
  close(): void;
}

export interface EtcdQuery {
  readonly from: string;
  /** The end of the range, exclusive. Default: only the key `from`. */
  readonly to?: string;
  readonly limit?: number;
  readonly at?: bigint;
}

export interface EtcdRange {
  readonly records: readonly EtcdRecord[];
  readonly more: boolean;
  readonly revision: bigint;
}

export interface EtcdRecord {
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
}

/** A compare of a key. The revisions of an absent key are 0. */
export interface EtcdCompare {
  readonly type: "create-revision" | "mod-revision";
  readonly key: string;
  readonly revision: bigint;
}

export type EtcdOp =
  | { readonly type: "put"; readonly key: string; readonly value: Uint8Array; readonly lease?: bigint }
  | { readonly type: "delete"; readonly from: string; readonly to?: string };

export interface EtcdTxn {
  readonly compares: readonly EtcdCompare[];
  readonly ops: readonly EtcdOp[];
  /** The keys that are read if a compare fails. */
  readonly otherwise?: readonly string[];
}

export interface EtcdTxnResult {
  readonly succeeded: boolean;
  readonly revision: bigint;
  /** The records of the keys in `otherwise`, in the same order. */
  readonly found: readonly (EtcdRecord | undefined)[];
}

export type EtcdMember =
  | {
      readonly type: "up";
      readonly endpoint: string;
      /** The version, such as 3.6.0. */
      readonly version: string;
      readonly clusterId: bigint;
    }
  | { readonly type: "down"; readonly endpoint: string; readonly reason: string };
