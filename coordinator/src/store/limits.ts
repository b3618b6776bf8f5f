/** etcd's default (--max-txn-ops), so that no caller grows a habit which another engine refuses. */
export const TXN_OPS_MAX = 128;

/** etcd's default (--max-request-bytes): keys and values of a transaction's compares and ops. */
export const TXN_BYTES_MAX = 1.5 * 1024 * 1024;

/** Keys are paths, kept in memory and written twice; anything longer is a mistake. */
export const KEY_BYTES_MAX = 1024;

/** The limit of a lease's keys: all of them can be deleted in one revision within TXN_BYTES_MAX. */
export const LEASE_KEYS_MAX = 1024;

/** The shortest time to live. Below it a busy process loses leases to a garbage collection. */
export const LEASE_TTL_MIN_MS = 100;

/** A day. Use a plain key for longer times. */
export const LEASE_TTL_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * Revisions kept readable and watchable. A watcher that was cut off resumes without a new listing if it missed fewer:
 * at 100 changes a second, which is a fleet being rolled out, that is 100 seconds; idle it is hours.
 */
export const HISTORY_REVISIONS = 10_000;

/** History is kept in memory: 10,000 revisions of 1.5 MiB would be 15 GB. */
export const HISTORY_BYTES = 64 * 1024 * 1024;

/**
 * The history may exceed its limit by a tenth before it is cut, so that cutting is one larger step instead of one for each write.
 */
export const HISTORY_SLACK = 1.1;

/** Transactions waiting for the disk. 1,024 writers fit 16 times; more means callers do not wait for answers. */
export const PENDING_TXNS_MAX = 16_384;

/** Bytes waiting for the disk; must stay below the free-space watermark, as they are written even when it is met. */
export const PENDING_BYTES_MAX = 32 * 1024 * 1024;
