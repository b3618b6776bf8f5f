import type { Version } from "../core/timeline.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { CHAIN_START, type Chain, type DecodedEntry, decodeEntry, entryKey } from "./entry-codec.ts";
import {
  BASE_KEY,
  type Base,
  BaseTally,
  decodeBase,
  decodeStoreMeta,
  STORE_KEY,
  type StoreMeta,
} from "./meta-codec.ts";
import { decodeRecord } from "./record-codec.ts";
import { describe, sealOf } from "./sealed.ts";

/** The last acknowledged revision. It is stored apart from the log, to show whether the end of the log is missing. */
export interface Head {
  readonly store: string;
  readonly revision: Revision;
  readonly chain: Chain;
}

/** The content of a database and all its defects. */
export interface Inspection {
  readonly meta: StoreMeta | undefined;
  readonly base: Base | undefined;
  /** Whether the database has no entries. */
  readonly empty: boolean;
  /** The undamaged records of the base. */
  readonly records: readonly Version[];
  /** The undamaged entries of the log, by revision. */
  readonly entries: readonly DecodedEntry[];
  /** The defects. Empty: the database is complete and undamaged. */
  readonly problems: readonly string[];
}

/** Returns the highest revision that the database contains. */
export function lastRevision({ base, entries }: Inspection): Revision {
  return entries.at(-1)?.revision ?? base?.revision ?? 0;
}

/** Collects the content of a database key by key, and checks its consistency, including with the head. */
export class Findings implements Inspection {
  readonly records: Version[] = [];
  readonly entries: DecodedEntry[] = [];
  readonly problems: string[] = [];
  meta: StoreMeta | undefined;
  base: Base | undefined;
  empty = true;
  readonly #tally = new BaseTally();
  /** The number of damaged records, which are not reported as missing again. */
  #damaged = 0;

  add(dbKey: string, value: Buffer): void {
    this.empty = false;
    try {
      if (dbKey.startsWith("k/")) this.#readRecord(dbKey, value);
      else if (dbKey.startsWith("l/")) this.#readEntry(dbKey, value);
      else if (dbKey === STORE_KEY) this.meta = decodeStoreMeta(value);
      else if (dbKey === BASE_KEY) this.base = decodeBase(value);
      else this.problems.push(`${describe(dbKey)} is unexpected`);
    } catch (error) {
      if (dbKey.startsWith("k/")) this.#damaged++;
      this.report(error);
    }
  }

  report(error: unknown): void {
    this.empty = false;
    if (error instanceof StoreError && error.code === "CORRUPT") this.problems.push(error.message);
    else throw error;
  }

  conclude(head: Head | undefined): void {
    if (this.meta === undefined) this.problems.push(`${describe(STORE_KEY)} is missing`);
    if (this.base === undefined) this.problems.push(`${describe(BASE_KEY)} is missing`);
    else this.#checkBase(this.base);
    this.#checkLog(this.base?.revision);
    if (head !== undefined) this.#checkHead(head);
  }

  #readRecord(dbKey: string, value: Buffer): void {
    this.records.push(decodeRecord(dbKey, value));
    this.#tally.add(sealOf(value));
  }

  #readEntry(dbKey: string, value: Buffer): void {
    const entry = decodeEntry(dbKey, value);
    if (entryKey(entry.revision) !== dbKey) {
      throw new StoreError("CORRUPT", `${describe(dbKey)} holds revision ${entry.revision}`);
    }
    this.entries.push(entry);
  }

  #checkBase(base: Base): void {
    const { count, sum } = this.#tally;
    const there = count + this.#damaged;
    if (there !== base.count) {
      this.problems.push(`of ${base.count} records as of revision ${base.revision}, ${there} are there`);
    } else if (this.#damaged === 0 && sum !== base.sum) {
      this.problems.push(
        `the records as of revision ${base.revision} have a wrong sum: a record is older or newer than it should be`,
      );
    }
    for (const record of this.records) {
      if (record.modRevision <= base.revision) continue;
      this.problems.push(
        `record ${JSON.stringify(record.key)} is of revision ${record.modRevision}, the base of ${base.revision}`,
      );
    }
  }

  #checkLog(baseRevision: Revision | undefined): void {
    let revision = baseRevision;
    let chain: Chain | undefined = this.base?.chain;
    for (const entry of this.entries) {
      if (revision !== undefined && entry.revision !== revision + 1) {
        this.problems.push(missing(revision + 1, entry.revision - 1, `revision ${entry.revision} is there`));
      } else if (chain !== undefined && entry.previous !== chain) {
        this.problems.push(
          `the log entry of revision ${entry.revision} doesn't continue the history of the entry before it`,
        );
      }
      revision = entry.revision;
      chain = entry.chain;
    }
  }

  #checkHead(head: Head): void {
    if (this.meta !== undefined && this.meta.id !== head.store) {
      this.problems.push(`the HEAD file is of the store ${head.store}, the database of ${this.meta.id}`);
      return;
    }
    const last = lastRevision(this);
    if (last < head.revision) {
      this.problems.push(missing(last + 1, head.revision, `revision ${head.revision} was acknowledged`));
      return;
    }
    const chain = chainAt(this, head.revision);
    if (chain !== undefined && chain !== head.chain) {
      this.problems.push(`the log entry of revision ${head.revision} is not the one that was acknowledged`);
    }
  }
}

function chainAt({ base, entries }: Inspection, revision: Revision): Chain | undefined {
  if (revision === 0) return CHAIN_START;
  if (revision === base?.revision) return base.chain;
  return entries.find((entry) => entry.revision === revision)?.chain;
}

function missing(first: Revision, last: Revision, because: string): string {
  const which =
    first >= last ? `entry of revision ${first} is` : `entries of revisions ${first} to ${last} are`;
  return `the log ${which} missing: ${because}`;
}
