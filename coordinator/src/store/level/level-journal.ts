import type { Clock } from "../clock.ts";
import type { Journal, JournalListener } from "../core/journal.ts";
import type { Commit, Timeline } from "../core/timeline.ts";
import { type Chain, type EncodedEntry, encodeEntry, entryKey } from "../format/entry-codec.ts";
import { BASE_KEY, type Base, BaseTally, encodeBase, type StoreMeta } from "../format/meta-codec.ts";
import { encodeRecord, recordKey } from "../format/record-codec.ts";
import type { Revision, StoreHealth } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { type Database, reasonOf } from "./database.ts";
import type { HeadFile } from "./head-file.ts";
import type { SpaceGuard } from "./space-guard.ts";

/**
 * The limit of commits written with one sync. Many writers share a sync; a larger batch would only make the first one wait
 * longer.
 */
const BATCH_COMMITS_MAX = 1024;

/** The limit of a batch. LevelDB's write buffer is 4 MiB, and a larger batch would fill several and stall. */
const BATCH_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The limit of history folded in one step between two batches. It equals that of a batch, so that folding keeps up with
 * writing.
 */
const FOLD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The delay of the HEAD file's sync, by which the file may be behind after a crash of the machine. Each sync costs a writer
 * half of one of its own.
 */
const HEAD_SYNC_DELAY_MS = 50;

/** The longest interval between checks of the free space, so that writing resumes soon after space was freed. */
const SPACE_CHECK_EVERY_MS = 1000;

export interface LevelJournalOptions {
  readonly db: Database;
  readonly headFile: HeadFile;
  readonly meta: StoreMeta;
  readonly base: Base;
  /** The chains of the base's revision and of each later revision. */
  readonly chains: readonly Chain[];
  readonly timeline: Timeline;
  readonly space: SpaceGuard;
  readonly clock: Clock;
}

interface Fold {
  readonly revision: Revision;
  readonly resolve: (folded: Revision) => void;
  readonly reject: (error: StoreError) => void;
}

/**
 * Writes commits as log entries, many with one sync: while a batch is being written, the next commits are collected.
 * Between batches, folding turns the oldest log entries into records, in a batch of its own.
 */
export class LevelJournal implements Journal {
  readonly #options: LevelJournalOptions;
  readonly #listener: JournalListener;
  #base: Base;
  #chains: Chain[];
  #queue: { readonly revision: Revision; readonly entry: EncodedEntry }[] = [];
  #fold: Fold | undefined;
  #running: Promise<void> | undefined;
  #failure: StoreError | undefined;
  #closed = false;
  #cancelHeadSync: (() => void) | undefined;
  #cancelSpaceCheck: (() => void) | undefined;

  constructor(options: LevelJournalOptions, listener: JournalListener) {
    this.#options = options;
    this.#listener = listener;
    this.#base = options.base;
    this.#chains = [...options.chains];
    this.#scheduleSpaceCheck();
  }

  append(commit: Commit): void {
    const entry = encodeEntry(commit, this.#chainAt(commit.revision - 1));
    this.#chains.push(entry.chain);
    this.#queue.push({ revision: commit.revision, entry });
    this.#run();
  }

  fold(revision: Revision): Promise<Revision> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      this.#fold = { revision, resolve, reject };
      this.#run();
    });
  }

  health(): StoreHealth {
    const { space } = this.#options;
    if (this.#failure !== undefined) {
      return { status: "read-only", reason: "io-error", message: this.#failure.message };
    }
    return space.low ? { status: "read-only", reason: "no-space", message: space.message } : { status: "ok" };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#cancelHeadSync?.();
    this.#cancelSpaceCheck?.();
    const { headFile, db } = this.#options;
    await headFile.sync().catch((error: unknown) => this.#fail("syncing the HEAD file", error));
    headFile.close();
    await db.close();
  }

  /** Starts the write loop unless it runs. It ends when the queue is empty. */
  #run(): void {
    if (this.#failure === undefined) this.#running ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    while (this.#failure === undefined && (this.#queue.length > 0 || this.#fold !== undefined)) {
      // Callers that just got their results make their next calls within this turn of the event loop, so their commits can
      // join the batch.
      await new Promise((resolve) => setImmediate(resolve));
      try {
        if (this.#queue.length > 0) await this.#writeBatch();
        if (this.#fold !== undefined) await this.#foldStep(this.#fold);
      } catch (error) {
        this.#fail(`writing from revision ${this.#queue[0]?.revision} on`, error);
      }
    }
    // Must be in the same synchronous step as the last check of the queue. Otherwise a commit appended in between would
    // never be written.
    this.#running = undefined;
  }

  async #writeBatch(): Promise<void> {
    const { db, headFile, meta, space } = this.#options;
    const batch = db.batch();
    let bytes = 0;
    let count = 0;
    for (const { entry } of this.#queue) {
      if (count === BATCH_COMMITS_MAX || (count > 0 && bytes + entry.value.length > BATCH_BYTES_MAX)) break;
      batch.put(entry.dbKey, entry.value);
      bytes += entry.value.length;
      count++;
    }
    const last = this.#queue[count - 1];
    if (last === undefined) return;
    await batch.write({ sync: true });
    this.#queue.splice(0, count);
    headFile.write({ store: meta.id, revision: last.revision, chain: last.entry.chain });
    this.#scheduleHeadSync();
    this.#listener.durable(last.revision);
    await space.wrote(bytes);
  }

  async #foldStep(fold: Fold): Promise<void> {
    const { db, timeline, space } = this.#options;
    let bytes = 0;
    this.#fold = undefined;
    const revision = timeline.foldTarget(fold.revision, FOLD_BYTES_MAX);
    const tally = new BaseTally(this.#base);
    const batch = db.batch();
    for (const [key, { before, after }] of timeline.changed(revision)) {
      tally.removeVersion(before);
      if (after.value === undefined) {
        batch.del(recordKey(key));
        continue;
      }
      const record = encodeRecord(after);
      tally.add(record.crc);
      batch.put(record.dbKey, record.value);
      bytes += record.value.length;
    }
    for (let folded = this.#base.revision + 1; folded <= revision; folded++) batch.del(entryKey(folded));
    const base = { revision, chain: this.#chainAt(revision), count: tally.count, sum: tally.sum };
    batch.put(BASE_KEY, encodeBase(base));
    try {
      await batch.write({ sync: true });
    } catch (error) {
      fold.reject(this.#fail(`folding revisions up to ${revision}`, error));
      return;
    }
    this.#chains.splice(0, revision - this.#base.revision);
    this.#base = base;
    fold.resolve(revision);
    await space.wrote(bytes);
  }

  #chainAt(revision: Revision): Chain {
    const chain = this.#chains[revision - this.#base.revision];
    if (chain === undefined)
      throw new Error(`no chain of revision ${revision} from ${this.#base.revision} on`);
    return chain;
  }

  /** Fails the journal permanently, because LevelDB accepts no write after a failed one. */
  #fail(doing: string, cause: unknown): StoreError {
    this.#failure ??= new StoreError(
      "IO_ERROR",
      `${doing} failed: ${reasonOf(cause)}; the outcome is unknown`,
      { cause },
    );
    this.#fold?.reject(this.#failure);
    this.#fold = undefined;
    this.#listener.failed(this.#failure);
    return this.#failure;
  }

  #scheduleHeadSync(): void {
    this.#cancelHeadSync ??= this.#options.clock.schedule(HEAD_SYNC_DELAY_MS, () => {
      this.#cancelHeadSync = undefined;
      this.#options.headFile.sync().catch((error: unknown) => this.#fail("syncing the HEAD file", error));
    });
  }

  /**
   * Checks the free space. Also creates the ballast that an opening on a full disk has removed, because the next opening
   * may need it.
   */
  async #checkSpace(): Promise<void> {
    const { space } = this.#options;
    await space.check();
    // If this fails, the next check tries again.
    if (!this.#closed) await space.loadBallast().catch(() => undefined);
  }

  #scheduleSpaceCheck(): void {
    this.#cancelSpaceCheck = this.#options.clock.schedule(SPACE_CHECK_EVERY_MS, () => {
      void this.#checkSpace().finally(() => {
        if (!this.#closed) this.#scheduleSpaceCheck();
      });
    });
  }
}
