/** The limit of operations in a transaction. etcd's default (--max-txn-ops), so that callers work with every engine. */
export const TXN_OPS_MAX = 128;

/** The limit of the keys and values in a transaction's compares and ops. etcd's default (--max-request-bytes). */
export const TXN_BYTES_MAX = 1.5 * 1024 * 1024;

/** The limit of a key. Keys are paths, kept in memory and written twice, so a longer key is a mistake. */
export const KEY_BYTES_MAX = 1024;

/** The limit of a lease's keys. All of them can be deleted in one revision within TXN_BYTES_MAX. */
export const LEASE_KEYS_MAX = 1024;

/**
 * The shortest time to live of a lease. With a shorter one, a busy process would lose leases during a garbage collection.
 */
export const LEASE_TTL_MIN_MS = 100;

/** The longest time to live of a lease: a day. Longer times don't need a lease. */
export const LEASE_TTL_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * The number of revisions that stay readable and watchable. A watcher that was disconnected can resume without a new
 * listing if it missed fewer: 100 seconds at 100 changes per second, as during a large rollout.
 */
export const HISTORY_REVISIONS = 10_000;

/** The limit of the history in memory. Without it, 10,000 revisions of 1.5 MiB would use 15 GB. */
export const HISTORY_BYTES = 64 * 1024 * 1024;

/**
 * The time that a revision stays in the history of the embedded store: at least this long, and at most twice as long. Its
 * readers are in the same process and seconds behind at most, so an idle coordinator doesn't have to keep the last busy
 * hour in memory. With etcd, another coordinator may have been cut off for longer, and would have to read everything again.
 */
export const HISTORY_AGE_MS = 2 * 60_000;

/**
 * The factor by which the history may exceed its limit before it is compacted, so that one larger compaction replaces one
 * for each write.
 */
export const HISTORY_SLACK = 1.1;

/**
 * The limit of transactions that wait for the disk. It is 16 times the number of expected writers; with more, callers don't
 * wait for results.
 */
export const PENDING_TXNS_MAX = 16_384;

/**
 * The limit of bytes that wait for the disk. It must be below the free-space watermark, because they are written even after
 * the watermark was reached.
 */
export const PENDING_BYTES_MAX = 32 * 1024 * 1024;
