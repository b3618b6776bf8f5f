import type { MonotonicClock } from "@forage/common/clock";
import type { Etcd } from "./etcd.ts";
import { HEAD_KEY } from "./layout.ts";

/**
 * The interval of compactions. etcd keeps every version of every key until it is compacted, and its database has a quota (2
 * GiB by default).
 */
const COMPACT_EVERY_MS = 5 * 60_000;

/** Compacts etcd's history older than one interval, repeatedly. Returns a function that ends it. */
export function compactHistory(etcd: Etcd, clock: MonotonicClock): () => void {
  let previous = 0n;
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(COMPACT_EVERY_MS, () => {
      later();
      compact().catch(() => {
        // A failed compaction is repeated at the next interval.
      });
    });
  };
  const compact = async (): Promise<void> => {
    const { revision } = await etcd.range({ from: HEAD_KEY });
    if (previous > 0n) await etcd.compact(previous);
    previous = revision;
  };
  later();
  return () => cancel();
}
