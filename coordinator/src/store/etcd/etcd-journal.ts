import type { Journal, JournalListener } from "../core/journal.ts";
import type { Commit, Timeline } from "../core/timeline.ts";
import { type Chain, type EncodedEntry, encodeEntry, entryKey } from "../format/entry-codec.ts";
import { BASE_KEY, type Base, BaseTally, encodeBase } from "../format/meta-codec.ts";
import { encodeRecord, recordKey } from "../format/record-codec.ts";
import type { Revision, StoreHealth } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdOp } from "./etcd.ts";
import { encodeHead } from "./head-record.ts";
import { type Insistence, insist } from "./insist.ts";
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

/** History folded in one step. Writes go on between its transactions. */
const FOLD_BYTES_MAX = 4 * 1024 * 1024;

/** The time for what is waiting when the store is closed. systemd ends the process after some more. */
const CLOSE_WAIT_MS = 3_000;

export interface EtcdJournalOptions extends Omit<Insistence, "signal" | "onRetry"> {
  readonly etcd: Etcd;
  readonly leadership: Leadership;
  readonly timeline: Timeline;
  readonly base: Base;
  /** The chain of the base's revision and of each one after it. */
  readonly chains: readonly Chain[];
  readonly store: string;
  readonly opening: string;
  /** etcd's revision of the head as this opening wrote it. */
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
 * Writes commits as log entries, many with one transaction of etcd: while one is on its way, the next gathers. The head
 * makes them count. It is moved by a transaction that compares its own revision and the leader's, so that
 *
 * - entries that need several transactions count all at once, when the head reaches them;
 * - a transaction without an answer is repeated without harm: the head shows whether it took effect;
 * - a coordinator that has lost the lead can change nothing.
 */
export class EtcdJournal implements Journal {
  readonly #options: EtcdJournalOptions;
  readonly #listener: JournalListener;
  readonly #giveUp = new AbortController();
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
    const cancel = this.#options.clock.schedule(CLOSE_WAIT_MS, () => this.#giveUp.abort());
    await this.#running;
    cancel();
    this.#giveUp.abort();
    await this.#options.leadership.release();
  }

  /** One loop at a time; it ends when there is nothing left to do. */
  #run(): void {
    if (this.#failure === undefined) this.#running ??= this.#work();
  }

  async #work(): Promise<void> {
    while (this.#failure === undefined && this.#hasWork()) {
      // Callers that were just answered ask again within this turn of the event loop: their next belongs in the batch.
      await new Promise((resolve) => setImmediate(resolve));
      try {
        if (this.#options.leadership.ended) await this.#options.leadership.retake(this.#headRevision);
        if (this.#queue.length > 0) await this.#writeBatch();
        if (this.#fold !== undefined) await this.#foldStep(this.#fold);
      } catch (error) {
        this.#fail(`writing from revision ${this.#queue[0]?.revision ?? this.#headAt()} on`, error);
      }
    }
    // Must happen in the same step as the last check of the queue. Otherwise a commit appended in between would wait for ever.
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

  /** As many commits as fit into one transaction, and at least one. */
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

  /** Writes if this coordinator leads, and moves the head if one is given. Returns when etcd has it. */
  async #write(ops: readonly EtcdOp[], head?: Buffer): Promise<void> {
    const { etcd, leadership } = this.#options;
    for (;;) {
      const result = await this.#insist(() =>
        etcd.txn({
          compares: [
            { kind: "createRevision", key: LEADER_KEY, revision: leadership.createRevision },
            { kind: "modRevision", key: HEAD_KEY, revision: this.#headRevision },
          ],
          ops: head === undefined ? ops : [...ops, { kind: "put", key: HEAD_KEY, value: head }],
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
    return insist(call, { clock, random, outage, signal: this.#giveUp.signal, onRetry });
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
      const wasLarge = (before?.value?.byteLength ?? 0) + RECORD_OVERHEAD_BYTES > PART_BYTES_MAX;
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
 * The transactions of a fold, in order. With several, the first one names the base that they lead to, and the last one
 * makes it the base: an opening after a fold that was cut off can finish it, because the log still has its entries.
 */
export function* foldGroups(ops: readonly EtcdOp[], from: Revision, base: Base): Generator<EtcdOp[]> {
  const target = encodeBase(base);
  const groups = [...grouped(ops)];
  const last = groups.pop() ?? [];
  for (const [at, group] of groups.entries())
    yield at === 0 ? [...group, { kind: "put", key: FOLD_KEY, value: target }] : group;
  yield [
    ...last,
    { kind: "put", key: BASE_KEY, value: target },
    { kind: "delete", from: FOLD_KEY },
    { kind: "delete", from: entryKey(from + 1), to: entryKey(base.revision + 1) },
  ];
}

/** Above what a record has besides its value: its numbers, its lease and the seal. */
const RECORD_OVERHEAD_BYTES = 512;
