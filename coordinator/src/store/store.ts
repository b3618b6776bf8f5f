/**
 * The store port: etcd's semantics behind a small interface.
 *
 * One counter, the revision, numbers all changes of the store: 1, 2, 3 … without gaps. A transaction that changes something
 * gets the next revision; one that changes nothing (failed compare, only absent keys deleted) gets none. Transactions and
 * reads are linearizable: a returned result is durable and visible to every later call.
 *
 * All methods fail with StoreError. Keys are strings of 1 to 1024 bytes of UTF-8 without control characters; ranges are
 * ordered by key (bytewise for ASCII keys). Values are opaque bytes. Callers must not change returned arrays.
 */
export interface Store {
  /** The highest revision known to be durable. 0 in an empty store. */
  readonly revision: Revision;

  /** The compacted revision. Reads at it and watches after it work; earlier ones fail with COMPACTED. */
  readonly compactRevision: Revision;

  get(key: string, options?: ReadOptions): Promise<StoredRecord | undefined>;

  /** Returns all records whose key starts with the prefix ("" means all), by key. */
  range(prefix: string, options?: RangeOptions): Promise<RangeResult>;

  /**
   * Applies all ops if every compare holds, otherwise none. Ops are applied in order, and a key may occur in one op only
   * (deletes may overlap). The limits are 128 compares, 128 ops and 1.5 MiB in total. After IO_ERROR, LEAD_LOST and
   * UNCONFIRMED, the outcome is unknown. After OVERLOADED, NO_SPACE and UNAVAILABLE, no op was applied.
   */
  txn(compares: readonly Compare[], ops: readonly Op[]): Promise<TxnResult>;

  /**
   * Yields all changes of keys under the prefix from the revision on, in order, exactly once. Each batch holds all changes
   * of one revision under the prefix; revisions without any are skipped. To follow a range, use `watch(prefix,
   * range.revision + 1, signal)`. The watch starts with this call and ends when it is aborted, returned or fails. It ends
   * without an error on abort, and fails with COMPACTED if the start was compacted, with SLOW if the reader's next batch
   * was compacted, and with CLOSED at close. After COMPACTED or SLOW, read the range again and watch from there.
   */
  watch(prefix: string, fromRevision: Revision, signal: AbortSignal): AsyncIterable<WatchBatch>;

  /** Grants a lease. Its keys are deleted in one revision when it is revoked or not kept alive in time. */
  lease(ttlMs: number): Promise<Lease>;

  /** Returns a lease that was granted earlier, perhaps by an earlier process. Throws LEASE_NOT_FOUND if it has ended. */
  findLease(id: LeaseId): Promise<Lease>;

  /**
   * Removes the history before the revision. Does nothing if it was already removed. Throws FUTURE_REVISION if the revision
   * is in the future.
   */
  compact(revision: Revision): Promise<void>;

  health(): StoreHealth;

  /** Waits for pending writes, then ends watches with CLOSED. Later calls fail with CLOSED. */
  close(): Promise<void>;
}

/** A whole number that grows with each change of the store. */
export type Revision = number;

export type LeaseId = string & { readonly LeaseId: unique symbol };

export interface StoredRecord {
  readonly key: string;
  readonly value: Uint8Array;
  /** The revision that created the key, since its last deletion. */
  readonly createRevision: Revision;
  /** The revision that last put the key. */
  readonly modRevision: Revision;
  /** The number of puts since the key was created: 1, 2 … */
  readonly version: number;
  readonly lease?: LeaseId;
}

export interface ReadOptions {
  /** The revision to read at. Default: the latest. Throws COMPACTED or FUTURE_REVISION if it is not readable. */
  readonly at?: Revision;
}

export interface RangeOptions extends ReadOptions {
  /** The largest number of records to return. */
  readonly limit?: number;
  /** The last key of the previous page; only later keys are returned. Pages with the same `at` are consistent. */
  readonly after?: string;
}

export interface RangeResult {
  readonly records: readonly StoredRecord[];
  /** The revision that was read. */
  readonly revision: Revision;
  /** Whether there are more records than the limit. */
  readonly more: boolean;
}

/** A condition on a key. An absent key has modRevision, createRevision and version 0. */
export type Compare =
  | { readonly type: "exists"; readonly key: string }
  | { readonly type: "absent"; readonly key: string }
  | { readonly type: "mod-revision"; readonly key: string; readonly revision: Revision }
  | { readonly type: "create-revision"; readonly key: string; readonly revision: Revision }
  | { readonly type: "version"; readonly key: string; readonly version: number }
  | { readonly type: "value"; readonly key: string; readonly value: Uint8Array };

export type Op =
  | { readonly type: "put"; readonly key: string; readonly value: Uint8Array; readonly lease?: LeaseId }
  | { readonly type: "delete"; readonly key: string }
  | { readonly type: "delete-prefix"; readonly prefix: string };

export interface TxnResult {
  /** Whether every compare held. */
  readonly succeeded: boolean;
  /** The transaction's revision or, if it changed nothing, the revision at which it was evaluated. */
  readonly revision: Revision;
}

export interface WatchBatch {
  readonly revision: Revision;
  readonly events: readonly WatchEvent[];
}

export type WatchEvent =
  | { readonly type: "put"; readonly record: StoredRecord }
  | { readonly type: "delete"; readonly key: string };

export interface Lease {
  readonly id: LeaseId;
  readonly ttlMs: number;
  /** Restarts the time to live. @throws StoreError LEASE_NOT_FOUND if the lease has ended. */
  keepAlive(): Promise<void>;
  /** Ends the lease and deletes its keys. Does nothing if the lease has ended. */
  revoke(): Promise<void>;
}

export type StoreHealth =
  | { readonly status: "ok" }
  /**
   * The store is read-only. After `no-space` it recovers when space is freed, after `unavailable` when the database
   * responds again. `io-error` requires a restart of the process, and `lead-lost` requires that the store is closed and
   * opened again.
   */
  | {
      readonly status: "read-only";
      readonly reason: "no-space" | "unavailable" | "io-error" | "lead-lost";
      readonly message: string;
    }
  | { readonly status: "closed" };
