import type { Journal, JournalListener } from "../core/journal.ts";
import type { Commit, Timeline } from "../core/timeline.ts";
import { type Chain, type EncodedEntry, encodeEntry, entryKey } from "../format/entry-codec.ts";
import { BASE_KEY, type Base, BaseTally, encodeBase } from "../format/meta-codec.ts";
import { encodeRecord, recordKey } from "../format/record-codec.ts";
import type { Revision, StoreHealth } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { type RetryTiming, retryUntilAnswered } from "./insist.ts";
import {
  deletionOf,
  deletionOfParts,
  FOLD_KEY,
  GROUP_OPS_MAX,
  grouped,
  HEAD_KEY,
  LEADER_KEY,
  PART_BYTES_MAX,
  putsOf,
} from "./layout.ts";
import { type Leadership, lost } from "./leadership.ts";

/** The limit of history folded in one step. Writes continue between the transactions of a step. */
const FOLD_BYTES_MAX = 4 * 1024 * 1024;

/** The time for queued commits when the store is closed. It is shorter than systemd's limit for ending the process. */
const CLOSE_WAIT_MS = 3_000;

export interface EtcdJournalOptions extends Omit<RetryTiming, "signal" | "onRetry"> {
  readonly etcd: Etcd;
  readonly leadership: Leadership;
  readonly timeline: Timeline;
  readonly base: Base;
  /** The chains of the base's revision and of each later revision. */
  readonly chains: readonly Chain[];
  readonly store: string;
  readonly opening: string;
  /** etcd's revision of the head as written by this opening. */
  readonly headRevision: bigint;
}

interface Fold {
  readonly revision: Revision;
  readonly resolve: (folded: Revision) => void;
  readonly reject: (error: StoreError) => void;
}

interface Batch {
  readonly count: number;
  readonly ops: readonly EtcdOp[];
}

/**
 * Writes commits as log entries, many in one transaction of etcd: while a transaction is in flight, the next commits are
 * collected. A log entry counts once the head has reached it. The head is moved by a transaction that compares the etcd
 * revisions of the head and of the leader's key, so that
 *
 * - entries of several transactions take effect together, when the head reaches them;
 *
 * - a transaction without a response can be repeated: the head shows whether it took effect;
 *
 * - a coordinator that has lost the lead can change nothing.
 */
export class EtcdJournal implements Journal {
  readonly #options: EtcdJournalOptions;
  readonly #listener: JournalListener;
  readonly #abandoned = new AbortController();
  #headRevision: bigint;
  #base: Base;
  #chains: Chain[];
  #queue: { readonly revision: Revision; readonly entry: EncodedEntry }[] = [];
  #fold: Fold | undefined;
  #running: Promise<void> | undefined;
  #failure: StoreError | undefined;

  constructor(options: EtcdJournalOptions, listener: JournalListener) {
    this.#options = options;
    this.#listener = listener;
    this.#headRevision = options.headRevision;
    this.#base = options.base;
    this.#chains = [...options.chains];
    options.leadership.onEnded(() => this.#run());
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
    if (this.#failure !== undefined) {
      const reason = this.#failure.code === "LEAD_LOST" ? "lead-lost" : "io-error";
      return { status: "read-only", reason, message: this.#failure.message };
    }
    return this.#options.outage.health();
  }

  async close(): Promise<void> {
    const cancel = this.#options.clock.schedule(CLOSE_WAIT_MS, () => this.#abandoned.abort());
    await this.#running;
    cancel();
    this.#abandoned.abort();
    await this.#options.leadership.release();
  }

  /** Starts the write loop unless it runs. It ends when the queue is empty. */
  #run(): void {
    if (this.#failure === undefined) this.#running ??= this.#work();
  }

  async #work(): Promise<void> {
    while (this.#failure === undefined && this.#hasWork()) {
      // Callers that just got their results make their next calls within this turn of the event loop, so their commits can
      // join the batch.
      await new Promise((resolve) => setImmediate(resolve));
      try {
        if (this.#options.leadership.ended) await this.#options.leadership.retake(this.#headRevision);
        if (this.#queue.length > 0) await this.#writeBatch();
        if (this.#fold !== undefined) await this.#foldStep(this.#fold);
      } catch (error) {
        this.#fail(`writing from revision ${this.#queue[0]?.revision ?? this.#headAt()} on`, error);
      }
    }
    // Must be in the same synchronous step as the last check of the queue. Otherwise a commit appended in between would
    // never be written.
    this.#running = undefined;
  }

  #hasWork(): boolean {
    return this.#queue.length > 0 || this.#fold !== undefined || this.#options.leadership.ended;
  }

  async #writeBatch(): Promise<void> {
    const { store, opening } = this.#options;
    const { count, ops } = this.#nextBatch();
    const last = this.#queue[count - 1];
    if (last === undefined) return;
    const groups = [...grouped(ops)];
    const final = groups.pop() ?? [];
    for (const group of groups) await this.#write(group);
    const { revision, entry } = last;
    await this.#write(final, encodeHead({ store, revision, chain: entry.chain, opening }));
    this.#queue.splice(0, count);
    this.#listener.durable(revision);
  }

  /** Returns as many commits as fit into one transaction, but at least one. */
  #nextBatch(): Batch {
    const ops: EtcdOp[] = [];
    let bytes = 0;
    let count = 0;
    for (const { entry } of this.#queue) {
      bytes += entry.value.length;
      const puts = putsOf(entry.dbKey, entry.value);
      if (count > 0 && (bytes > PART_BYTES_MAX || ops.length + puts.length > GROUP_OPS_MAX)) break;
      ops.push(...puts);
      count++;
    }
    return { count, ops };
  }

  /**
   * Writes the operations if this coordinator leads, and moves the head if one is given. Returns once etcd has committed
   * them.
   */
  async #write(ops: readonly EtcdOp[], head?: Buffer): Promise<void> {
    const { etcd, leadership } = this.#options;
    for (;;) {
      const result = await this.#insist(() =>
        etcd.txn({
          compares: [
            { type: "create-revision", key: LEADER_KEY, revision: leadership.createRevision },
            { type: "mod-revision", key: HEAD_KEY, revision: this.#headRevision },
          ],
          ops: head === undefined ? ops : [...ops, { type: "put", key: HEAD_KEY, value: head }],
          otherwise: [LEADER_KEY, HEAD_KEY],
        }),
      );
      const [leader, found] = result.found;
      if (result.succeeded || (head !== undefined && found?.value.equals(head))) {
        if (head !== undefined) this.#headRevision = found?.modRevision ?? result.revision;
        return;
      }
      if (found?.modRevision !== this.#headRevision) throw lost(leader);
      await leadership.retake(this.#headRevision);
    }
  }

  #insist<T>(call: () => Promise<T>): Promise<T> {
    const { clock, random, outage } = this.#options;
    const onRetry = (): void => {
      const { stalled } = outage;
      if (stalled !== undefined) this.#listener.stalled(stalled);
    };
    return retryUntilAnswered(call, { clock, random, outage, signal: this.#abandoned.signal, onRetry });
  }

  async #foldStep(fold: Fold): Promise<void> {
    this.#fold = undefined;
    const revision = this.#options.timeline.foldTarget(fold.revision, FOLD_BYTES_MAX);
    try {
      await this.#foldTo(revision);
    } catch (error) {
      fold.reject(this.#fail(`folding revisions up to ${revision}`, error));
      return;
    }
    fold.resolve(revision);
  }

  async #foldTo(revision: Revision): Promise<void> {
    const tally = new BaseTally(this.#base);
    const ops: EtcdOp[] = [];
    for (const [key, { before, after }] of this.#options.timeline.changed(revision)) {
      tally.removeVersion(before);
      if (after.value === undefined) {
        ops.push(deletionOf(recordKey(key)));
        continue;
      }
      const { dbKey, value, crc } = encodeRecord(after);
      tally.add(crc);
      const puts = putsOf(dbKey, value);
      ops.push(...puts);
      const wasLarge = (before?.value?.length ?? 0) + RECORD_OVERHEAD_BYTES > PART_BYTES_MAX;
      if (wasLarge) ops.push(deletionOfParts(dbKey, puts.length));
    }
    const base = { revision, chain: this.#chainAt(revision), count: tally.count, sum: tally.sum };
    for (const group of foldGroups(ops, this.#base.revision, base)) {
      await this.#write(group);
      if (this.#queue.length > 0) await this.#writeBatch();
    }
    this.#chains.splice(0, revision - this.#base.revision);
    this.#base = base;
  }

  #chainAt(revision: Revision): Chain {
    const chain = this.#chains[revision - this.#base.revision];
    if (chain === undefined)
      throw new Error(`no chain of revision ${revision} from ${this.#base.revision} on`);
    return chain;
  }

  #headAt(): Revision {
    return this.#base.revision + this.#chains.length - 1;
  }

  #fail(doing: string, cause: unknown): StoreError {
    const known = cause instanceof StoreError && (cause.code === "IO_ERROR" || cause.code === "LEAD_LOST");
    this.#failure ??= known
      ? cause
      : new StoreError("IO_ERROR", `${doing} failed; the outcome is unknown`, { cause });
    this.#fold?.reject(this.#failure);
    this.#fold = undefined;
    this.#listener.failed(this.#failure);
    return this.#failure;
  }
}

/**
 * Yields the transactions of a fold, in order. If there are several, the first one records the target base and the last one
 * makes it the base. If the fold is interrupted, the next opening can finish it, because the log still has its entries.
 */
export function* foldGroups(ops: readonly EtcdOp[], from: Revision, base: Base): Generator<EtcdOp[]> {
  const target = encodeBase(base);
  const groups = [...grouped(ops)];
  const last = groups.pop() ?? [];
  for (const [at, group] of groups.entries())
    yield at === 0 ? [...group, { type: "put", key: FOLD_KEY, value: target }] : group;
  yield [
    ...last,
    { type: "put", key: BASE_KEY, value: target },
    { type: "delete", from: FOLD_KEY },
    { type: "delete", from: entryKey(from + 1), to: entryKey(base.revision + 1) },
  ];
}

/** The upper bound of a record's size apart from its value: its numbers, its lease and the seal. */
const RECORD_OVERHEAD_BYTES = 512;
