import { decodeEntry, entryKey } from "../format/entry-codec.ts";
import { Findings, type Inspection } from "../format/findings.ts";
import { BASE_KEY, type Base, decodeBase } from "../format/meta-codec.ts";
import { encodeRecord, recordKey } from "../format/record-codec.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdOp, EtcdRecord } from "./etcd.ts";
import { decodeHead, type HeadRecord } from "./head-record.ts";
import { type RetryTiming, retryUntilAnswered } from "./insist.ts";
import {
  ALL_KEYS,
  deletionOfParts,
  FOLD_KEY,
  HEAD_KEY,
  joined,
  LEADER_KEY,
  MOVED_KEY,
  putsOf,
  RESTORING_KEY,
} from "./layout.ts";

/** The number of records in a page. With typical records of 4 kB, a page is a megabyte. */
const PAGE_RECORDS = 250;

/** The content of a store, at one revision of etcd. */
export interface Content {
  readonly inspection: Inspection;
  readonly head: HeadRecord | undefined;
  /** etcd's revision of the head. 0: there is no head. */
  readonly headRevision: bigint;
  /** The place to which the store was moved. Undefined: it was not. */
  readonly movedTo: string | undefined;
  /** The remaining operations of an interrupted fold. `inspection` contains its result already. */
  readonly unfinishedFold: UnfinishedFold | undefined;
}

export interface UnfinishedFold {
  readonly from: number;
  readonly base: Base;
  readonly ops: readonly EtcdOp[];
}

/** Reads and checks the whole store. Leaves out log entries after the head, which belong to an incomplete write. */
export async function readStore(etcd: Etcd, calls: RetryTiming): Promise<Content> {
  const { records, headRevision } = await readPages(etcd, calls, ALL_KEYS);
  const pairs = new Map(joined(records));
  const headValue = pairs.get(HEAD_KEY);
  const movedTo = pairs.get(MOVED_KEY)?.toString("utf8");
  for (const key of [HEAD_KEY, LEADER_KEY, MOVED_KEY]) pairs.delete(key);
  const found = new Findings();
  if (pairs.delete(RESTORING_KEY))
    found.report(
      new StoreError("CORRUPT", "the restore of the store was interrupted: restore the backup again"),
    );
  const attempt = <T>(run: () => T): T | undefined => {
    try {
      return run();
    } catch (error) {
      found.report(error);
      return undefined;
    }
  };
  const head = headValue && attempt(() => decodeHead(headValue));
  if (head !== undefined) dropAfter(pairs, head.revision);
  const unfinishedFold = attempt(() => finishFold(pairs));
  for (const [key, value] of pairs) found.add(key, value);
  found.conclude(head);
  if (head === undefined && !found.empty) found.problems.push("the head is missing");
  return { inspection: found, head, headRevision, movedTo, unfinishedFold };
}

/** Reads the keys of the range, all at one revision of etcd. */
export async function readPages(
  etcd: Etcd,
  calls: RetryTiming,
  range: { readonly from: string; readonly to: string },
): Promise<{ readonly records: readonly EtcdRecord[]; readonly headRevision: bigint }> {
  const records: EtcdRecord[] = [];
  let headRevision = 0n;
  let at: bigint | undefined;
  let { from } = range;
  for (;;) {
    const query = { from, to: range.to, limit: PAGE_RECORDS, ...(at !== undefined && { at }) };
    const page = await retryUntilAnswered(() => etcd.range(query), calls);
    at ??= page.revision;
    for (const record of page.records) {
      records.push(record);
      if (record.key === HEAD_KEY) headRevision = record.modRevision;
    }
    const last = page.records.at(-1);
    if (!page.more || last === undefined) return { records, headRevision };
    from = `${last.key}\0`;
  }
}

/** Removes the log entries after the head. Entries are sorted, so these are at the end. */
function dropAfter(pairs: Map<string, Buffer>, revision: number): void {
  const limit = entryKey(revision);
  for (const key of pairs.keys()) if (key.startsWith("l/") && key > limit) pairs.delete(key);
}

/**
 * Applies the log up to the fold's target to the records. An interrupted fold leaves some records at the old base and
 * others at the new one; the log has the last version of each changed record.
 */
function finishFold(pairs: Map<string, Buffer>): UnfinishedFold | undefined {
  const target = pairs.get(FOLD_KEY);
  const old = pairs.get(BASE_KEY);
  pairs.delete(FOLD_KEY);
  if (target === undefined || old === undefined) return undefined;
  const base = decodeBase(target);
  const { revision: from } = decodeBase(old);
  const changed = new Map<string, Buffer | undefined>();
  for (let revision = from + 1; revision <= base.revision; revision++) {
    const dbKey = entryKey(revision);
    const entry = pairs.get(dbKey);
    // A missing entry is found when the records are counted.
    if (entry === undefined) continue;
    for (const change of decodeEntry(dbKey, entry).changes)
      changed.set(recordKey(change.key), change.value === undefined ? undefined : encodeRecord(change).value);
    pairs.delete(dbKey);
  }
  const ops: EtcdOp[] = [];
  for (const [key, value] of changed) {
    if (value === undefined) pairs.delete(key);
    else pairs.set(key, value);
    const puts = value === undefined ? [] : putsOf(key, value);
    ops.push(...puts, deletionOfParts(key, puts.length));
  }
  pairs.set(BASE_KEY, target);
  return { from, base, ops };
}
