/**
 * The part of etcd that the store uses. Keys are text; revisions are etcd's own, which count all changes of the cluster
 * and have nothing to do with the store's.
 *
 * All methods fail with EtcdError. A failed call may have taken effect.
 */
export interface Etcd {
  /** Linearizable, or as of the revision. */
  range(query: EtcdQuery): Promise<EtcdRange>;
  /** Applies all operations at one revision if every compare holds, else none. */
  txn(txn: EtcdTxn): Promise<EtcdTxnResult>;
  /** Removes the history before the revision, of the whole cluster. */
  compact(revision: bigint): Promise<void>;
  grantLease(ttlSeconds: number): Promise<bigint>;
  /** Returns false when the lease has ended. */
  keepLeaseAlive(id: bigint): Promise<boolean>;
  /** Deletes the lease's keys. Does nothing when it has ended. */
  revokeLease(id: bigint): Promise<void>;
  /** Resolves when the key changed after the revision, or when etcd can't tell any more, so the caller reads it again. */
  changed(key: string, after: bigint, signal: AbortSignal): Promise<void>;
  /** Returns what each endpoint answers, or why it does not. */
  members(): Promise<readonly EtcdMember[]>;
  close(): void;
}

export interface EtcdQuery {
  readonly from: string;
  /** The key after the last one. Default: only `from`. */
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

/** An absent key has the revisions 0. */
export interface EtcdCompare {
  readonly kind: "createRevision" | "modRevision";
  readonly key: string;
  readonly revision: bigint;
}

export type EtcdOp =
  | { readonly kind: "put"; readonly key: string; readonly value: Uint8Array; readonly lease?: bigint }
  | { readonly kind: "delete"; readonly from: string; readonly to?: string };

export interface EtcdTxn {
  readonly compares: readonly EtcdCompare[];
  readonly ops: readonly EtcdOp[];
  /** Keys that are read when a compare fails. */
  readonly otherwise?: readonly string[];
}

export interface EtcdTxnResult {
  readonly succeeded: boolean;
  readonly revision: bigint;
  /** The records of `otherwise`, in its order. */
  readonly found: readonly (EtcdRecord | undefined)[];
}

export type EtcdMember =
  | {
      readonly type: "up";
      readonly endpoint: string;
      /** Such as 3.6.0. */
      readonly version: string;
      readonly clusterId: bigint;
    }
  | { readonly type: "down"; readonly endpoint: string; readonly reason: string };
