import { type Chain, type DecodedEntry, decodeEntry, entryKey } from "../format/entry-codec.ts";
import {
  BASE_KEY,
  type Base,
  decodeBase,
  decodeStoreMeta,
  STORE_KEY,
  type StoreMeta,
} from "../format/meta-codec.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd } from "./etcd.ts";
import { decodeHead } from "./head-record.ts";
import type { RetryTiming } from "./insist.ts";
import { FOLD_KEY, HEAD_KEY, joined, MOVED_KEY, RESTORING_KEY } from "./layout.ts";
import { readPages } from "./read-store.ts";

/** The end of the history that another coordinator writes. */
export interface HistoryEnd {
  readonly meta: StoreMeta;
  readonly base: Base;
  /** The target base of an unfinished fold. */
  readonly foldTarget: Base | undefined;
  /** etcd's revision of the head. */
  readonly headRevision: bigint;
  /** The entries after the known one, in order and without gaps. */
  readonly entries: readonly DecodedEntry[];
}

/** The last entry that the follower has. */
export interface KnownEntry {
  readonly revision: Revision;
  readonly chain: Chain;
}

/** The end of the range of keys `m/…`, which sort after the log. */
const AFTER_META = "m0";

/**
 * Reads the entries after the known one, at one revision of etcd. @throws StoreError COMPACTED if the log no longer
 * contains them, CORRUPT if the log continues another history.
 */
export async function readHistoryEnd(etcd: Etcd, calls: RetryTiming, known: KnownEntry): Promise<HistoryEnd> {
  const range = { from: entryKey(known.revision + 1), to: AFTER_META };
  const { records, headRevision } = await readPages(etcd, calls, range);
  const pairs = new Map(joined(records));
  const [meta, base, head, fold] = [STORE_KEY, BASE_KEY, HEAD_KEY, FOLD_KEY].map((key) => pairs.get(key));
  if (meta === undefined || base === undefined || head === undefined)
    throw new StoreError("CORRUPT", "the store in etcd no longer exists");
  if (pairs.has(MOVED_KEY) || pairs.has(RESTORING_KEY))
    throw new StoreError("CORRUPT", "the store in etcd was moved or is being restored");
  const last = decodeHead(head);
  const decodedBase = decodeBase(base);
  if (last.revision < known.revision) throw differs(last.revision);
  if (decodedBase.revision > known.revision && !pairs.has(range.from) && last.revision > known.revision)
    throw new StoreError("COMPACTED", `the log begins after revision ${decodedBase.revision}`, {
      compactRevision: decodedBase.revision,
    });
  return {
    meta: decodeStoreMeta(meta),
    base: decodedBase,
    foldTarget: fold && decodeBase(fold),
    headRevision,
    entries: [...entriesUpTo(last.revision, pairs, known)],
  };
}

function* entriesUpTo(
  last: Revision,
  pairs: ReadonlyMap<string, Buffer>,
  known: KnownEntry,
): Generator<DecodedEntry> {
  let { chain } = known;
  for (let revision = known.revision + 1; revision <= last; revision++) {
    const dbKey = entryKey(revision);
    const value = pairs.get(dbKey);
    const entry = value && decodeEntry(dbKey, value);
    if (entry === undefined || entry.previous !== chain) throw differs(revision);
    ({ chain } = entry);
    yield entry;
  }
}

function differs(revision: Revision): StoreError {
  return new StoreError(
    "CORRUPT",
    `the history in etcd differs at revision ${revision} from the history that was read before`,
  );
}
