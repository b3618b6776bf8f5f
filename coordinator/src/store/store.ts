/**
 * The store port: etcd's semantics behind a small interface.
 *
 * One counter, the revision, numbers every change of the whole store: 1, 2, 3 … without gaps. A transaction that
 * changes something takes the next revision; one that changes nothing (compare failed, only absent keys deleted)
 * takes none. Transactions and reads are linearizable: what a call returned is durable, and every later call sees it.
 *
 * All methods fail with StoreError. Keys are strings of 1 to 1024 bytes of UTF-8 without control characters; ranges
 * are ordered by key (bytewise for ASCII keys). Values are opaque bytes: never write into an array a store returned.
 */
export interface Store {
  /** The highest revision known to be durable; 0 in an empty store. */
  readonly revision: Revision;

  /** Reads at and watches after this revision work; anything older fails with COMPACTED. */
  readonly compactRevision: Revision;

  get(key: string, options?: ReadOptions): Promise<StoredRecord | undefined>;

  /** Returns all records whose key starts with the prefix ("" means all), by key. */
  range(prefix: string, options?: RangeOptions): Promise<RangeResult>;

  /**
   * Applies all ops if every compare holds, else none. Ops run in order, and at most one may touch a key (deletes may
   * overlap). At most 128 compares, 128 ops and 1.5 MiB together. IO_ERROR, LEAD_LOST and UNCONFIRMED mean that the outcome is
   * unknown. OVERLOADED, NO_SPACE and UNAVAILABLE mean that no op was applied.
   */
  txn(compares: readonly Compare[], ops: readonly Op[]): Promise<TxnResult>;

  /**
   * Yields every change of keys under the prefix from that revision on, oldest first, one batch per revision: in order,
   * exactly once, complete. A batch holds only the events under the prefix; revisions without any are skipped. To follow a
   * range: `watch(prefix, range.revision + 1, signal)`. The watch is held from this call until it is aborted, returned or
   * fails. Ends without error on abort; fails with COMPACTED when the start is gone, with SLOW when the reader fell so far
   * behind that its next batch is gone, with CLOSED at close. After COMPACTED or SLOW: read the range again and watch from
   * there.
   */
  watch(prefix: string, fromRevision: Revision, signal: AbortSignal): AsyncIterable<WatchBatch>;

  /** Grants a lease. Keys put under it vanish, in one revision, when it is revoked or not kept alive in time. */
  lease(ttlMs: number): Promise<Lease>;

  /** A lease that was granted earlier, perhaps to an earlier process; LEASE_NOT_FOUND when it has ended. */
  findLease(id: LeaseId): Promise<Lease>;

  /**
   * Removes the history before the revision. Does nothing when that is already done; FUTURE_REVISION when the store has not
   * reached it.
   */
  compact(revision: Revision): Promise<void>;

  health(): StoreHealth;

  /** Settles what is in flight, then ends watches with CLOSED. Everything after it fails with CLOSED. */
  close(): Promise<void>;
}

/** A whole number that grows with each change of the store. */
export type Revision = number;

export type LeaseId = string & { readonly LeaseId: unique symbol };

export interface StoredRecord {
  readonly key: string;
  readonly value: Uint8Array;
  /** The revision that created the key (since it was last deleted). */
  readonly createRevision: Revision;
  /** The revision that last put the key. */
  readonly modRevision: Revision;
  /** Number of puts since it was created: 1, 2 … */
  readonly version: number;
  readonly lease?: LeaseId;
}

export interface ReadOptions {
  /** Read as of this revision instead of the latest. COMPACTED or FUTURE_REVISION when out of reach. */
  readonly at?: Revision;
}

export interface RangeOptions extends ReadOptions {
  /** The largest number of records to return. */
  readonly limit?: number;
  /** Returns only keys after this one: the last key of the previous page. Pages with the same `at` are consistent. */
  readonly after?: string;
}

export interface RangeResult {
  readonly records: readonly StoredRecord[];
  /** The revision the records are of. */
  readonly revision: Revision;
  /** Whether the limit left records out. */
  readonly more: boolean;
}

/** An absent key has modRevision, createRevision and version 0. */
export type Compare =
  | { readonly kind: "exists"; readonly key: string }
  | { readonly kind: "absent"; readonly key: string }
  | { readonly kind: "modRevision"; readonly key: string; readonly revision: Revision }
  | { readonly kind: "createRevision"; readonly key: string; readonly revision: Revision }
  | { readonly kind: "version"; readonly key: string; readonly version: number }
  | { readonly kind: "value"; readonly key: string; readonly value: Uint8Array };

export type Op =
  | { readonly kind: "put"; readonly key: string; readonly value: Uint8Array; readonly lease?: LeaseId }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "deletePrefix"; readonly prefix: string };

export interface TxnResult {
  /** Whether every compare held. */
  readonly succeeded: boolean;
  /** The revision this transaction took or, where it changed nothing, the one it was decided at. */
  readonly revision: Revision;
}

export interface WatchBatch {
  readonly revision: Revision;
  readonly events: readonly WatchEvent[];
}

export type WatchEvent =
  | { readonly kind: "put"; readonly record: StoredRecord }
  | { readonly kind: "delete"; readonly key: string };

export interface Lease {
  readonly id: LeaseId;
  readonly ttlMs: number;
  /**
   * Restarts the time to live.
   * @throws StoreError LEASE_NOT_FOUND when it has ended.
   */
  keepAlive(): Promise<void>;
  /** Ends the lease and deletes its keys. Does nothing when it has ended. */
  revoke(): Promise<void>;
}

export type StoreHealth =
  | { readonly status: "ok" }
  /**
   * `no-space` heals when space is freed, `unavailable` when the database answers again. `io-error` heals only when the process ends
   * and opens the store again, and `lead-lost` when the store is closed and opened again.
   */
  | {
      readonly status: "read-only";
      readonly reason: "no-space" | "unavailable" | "io-error" | "lead-lost";
      readonly message: string;
    }
  | { readonly status: "closed" };
