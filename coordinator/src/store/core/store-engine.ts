import type { Clock } from "../clock.ts";
import {
  HISTORY_BYTES,
  HISTORY_REVISIONS,
  HISTORY_SLACK,
  PENDING_BYTES_MAX,
  PENDING_TXNS_MAX,
} from "../limits.ts";
import type {
  Compare,
  Lease,
  LeaseId,
  Op,
  RangeOptions,
  RangeResult,
  ReadOptions,
  Revision,
  Store,
  StoredRecord,
  StoreHealth,
  TxnResult,
  WatchBatch,
} from "../store.ts";
import { StoreError } from "../store-error.ts";
import { checkKey, checkPrefix, checkRevision, checkTtl, checkTxn } from "../validate.ts";
import { decide, deletions } from "./decide.ts";
import type { Journal, JournalListener } from "./journal.ts";
import { LeaseTable } from "./lease-table.ts";
import type { Change, Commit, Timeline, Version } from "./timeline.ts";
import { compacted, failedWatch, WatchHub } from "./watch-hub.ts";
import { toRecord } from "./watcher.ts";

export interface StoreEngineOptions {
  readonly clock: Clock;
  /** The stored history, as read when the store was opened. */
  readonly timeline: Timeline;
  /**
   * The prefix of lease ids, different for each opening of the store. Undefined: the engine follows the commits of another
   * process until `leadFrom` is called.
   */
  readonly leaseIdPrefix: string | undefined;
  readonly openJournal: (listener: JournalListener) => Journal;
  /** The number of revisions to keep. Default: HISTORY_REVISIONS. */
  readonly historyRevisions?: number;
  /** The time that a revision is kept: at least this long, and at most twice as long. Default: no limit. */
  readonly historyAgeMs?: number;
}

interface Waiter {
  readonly revision: Revision;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

/**
 * Implements the store's semantics with a timeline in memory and a journal that makes it durable.
 *
 * A transaction is evaluated and appended to the timeline as soon as it is called, before it is durable, so that many can
 * be written together. Readers and watchers only see durable commits. Every result, including that of a failed compare, is
 * returned only after the commits that it depends on are durable.
 */
export class StoreEngine implements Store {
  readonly #timeline: Timeline;
  readonly #clock: Clock;
  #journal: Journal;
  readonly #hub: WatchHub;
  /** The live leases. Undefined while another process leads. */
  #leases: LeaseTable | undefined;
  readonly #historyRevisions: number;
  readonly #historyAgeMs: number | undefined;
  #durable: Revision;
  /** Calls that wait for durable commits, in order of revision. */
  #waiters: Waiter[] = [];
  #pendingBytes = 0;
  #compaction: Promise<void> = Promise.resolve();
  #trimming = false;
  #cancelAging: (() => void) | undefined;
  #failure: StoreError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: StoreEngineOptions) {
    const timeline = options.timeline;
    this.#clock = options.clock;
    this.#timeline = timeline;
    this.#durable = timeline.head;
    this.#historyRevisions = options.historyRevisions ?? HISTORY_REVISIONS;
    this.#historyAgeMs = options.historyAgeMs;
    const durable = (): Revision => this.#durable;
    this.#hub = new WatchHub({
      get durable() {
        return durable();
      },
      commit: (revision) => timeline.commit(revision),
    });
    if (options.leaseIdPrefix !== undefined) this.#leases = this.#recoverLeases(options.leaseIdPrefix);
    this.#journal = options.openJournal(this.#listener());
    this.#compactLater();
  }

  get revision(): Revision {
    return this.#durable;
  }

  get compactRevision(): Revision {
    return this.#timeline.compactRevision;
  }

  async get(key: string, options: ReadOptions = {}): Promise<StoredRecord | undefined> {
    checkKey(key);
    const version = this.#timeline.read(key, this.#readable(options.at));
    return version === undefined ? undefined : toRecord(version);
  }

  async range(prefix: string, options: RangeOptions = {}): Promise<RangeResult> {
    const { limit = Number.POSITIVE_INFINITY, after = "" } = options;
    checkPrefix(prefix);
    if (!(limit >= 1)) throw new StoreError("INVALID_ARGUMENT", `a limit is at least 1, not ${limit}`);
    const revision = this.#readable(options.at);
    const found = this.#timeline.range({ prefix, at: revision, after, limit });
    const more = found.length > limit;
    return { records: (more ? found.slice(0, limit) : found).map(toRecord), revision, more };
  }

  async txn(compares: readonly Compare[], ops: readonly Op[]): Promise<TxnResult> {
    this.#checkWritable();
    checkTxn(compares, ops);
    this.#ownLeases().check(ops);
    const { succeeded, changes } = decide(this.#timeline, compares, ops);
    const revision = await this.#commit(changes);
    return { succeeded, revision };
  }

  watch(prefix: string, fromRevision: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    try {
      this.#checkOpen();
      checkPrefix(prefix);
      checkRevision(fromRevision);
    } catch (error) {
      return failedWatch(error);
    }
    return this.#hub.open(prefix, fromRevision, this.compactRevision, signal);
  }

  async lease(ttlMs: number): Promise<Lease> {
    this.#checkOpen();
    checkTtl(ttlMs);
    return this.#leaseHandle(this.#ownLeases().grant(ttlMs), ttlMs);
  }

  async findLease(id: LeaseId): Promise<Lease> {
    this.#checkOpen();
    return this.#leaseHandle(id, this.#ownLeases().ttlMs(id));
  }

  async compact(revision: Revision): Promise<void> {
    this.#checkOpen();
    checkRevision(revision);
    if (revision > this.#durable) throw future(revision, this.#durable);
    this.#compaction = this.#compaction.catch(() => {}).then(() => this.#compactTo(revision));
    await this.#compaction;
  }

  health(): StoreHealth {
    return this.#closing === undefined ? this.#journal.health() : { status: "closed" };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Returns all records of the newest durable revision. */
  protected snapshot(): { readonly versions: readonly Version[]; readonly revision: Revision } {
    this.#checkOpen();
    const revision = this.#durable;
    return { versions: this.#timeline.range({ ...EVERYTHING, at: revision }), revision };
  }

  /** Applies commits that another process has made durable, in order, and compacts the history like that process. */
  protected follow(
    commits: readonly Pick<Commit, "revision" | "changes">[],
    compactRevision: Revision,
  ): void {
    for (const { revision, changes } of commits) this.#timeline.replay(revision, changes);
    if (commits.length > 0) this.#settle(this.#timeline.head);
    if (compactRevision <= this.compactRevision) return;
    this.#hub.compacting(compactRevision);
    this.#timeline.compact(compactRevision);
  }

  /** Makes this process the leader. No other process may have written since the last `follow`. */
  protected leadFrom(
    leaseIdPrefix: string,
    openJournal: (listener: JournalListener, timeline: Timeline) => Journal,
  ): void {
    this.#journal = openJournal(this.#listener(), this.#timeline);
    this.#leases = this.#recoverLeases(leaseIdPrefix);
  }

  #listener(): JournalListener {
    return {
      durable: (revision) => this.#settle(revision),
      stalled: (error) => this.#rejectWaiting(error),
      failed: (error) => this.#fail(error),
    };
  }

  #recoverLeases(idPrefix: string): LeaseTable {
    const leases = new LeaseTable(this.#clock, idPrefix, (id) => this.#expire(id));
    for (const version of this.#timeline.range({ ...EVERYTHING, at: this.#timeline.head }))
      leases.recover(version);
    return leases;
  }

  #ownLeases(): LeaseTable {
    if (this.#leases === undefined) throw new StoreError("UNAVAILABLE", "another coordinator leads");
    return this.#leases;
  }

  async #close(): Promise<void> {
    this.#leases?.close();
    this.#cancelAging?.();
    await this.#compaction.catch(() => {});
    await this.#journal.close();
    this.#hub.close();
  }

  #readable(at: Revision | undefined): Revision {
    this.#checkOpen();
    if (at === undefined) return this.#durable;
    checkRevision(at);
    if (at > this.#durable) throw future(at, this.#durable);
    if (at < this.compactRevision) throw compacted(at, this.compactRevision);
    return at;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new StoreError("CLOSED", "the store is closed");
  }

  #checkWritable(): void {
    this.#checkOpen();
    if (this.#failure !== undefined) {
      const code = this.#failure.code === "LEAD_LOST" ? "LEAD_LOST" : "IO_ERROR";
      throw new StoreError(code, `the store is read-only after: ${this.#failure.message}`);
    }
    const health = this.#journal.health();
    if (health.status === "read-only") {
      throw new StoreError(health.reason === "unavailable" ? "UNAVAILABLE" : "NO_SPACE", health.message);
    }
    if (this.#waiters.length >= PENDING_TXNS_MAX || this.#pendingBytes >= PENDING_BYTES_MAX) {
      throw new StoreError("OVERLOADED", `${this.#waiters.length} transactions wait for the disk`);
    }
  }

  /** Appends the changes to the timeline. Resolves when they and all commits before them are durable. */
  async #commit(changes: readonly Change[]): Promise<Revision> {
    if (changes.length === 0) {
      const revision = this.#timeline.head;
      await this.#untilDurable(revision, 0);
      return revision;
    }
    const commit = this.#timeline.append(changes);
    this.#leases?.apply(commit);
    const waiting = this.#untilDurable(commit.revision, commit.bytes);
    this.#journal.append(commit);
    await waiting;
    return commit.revision;
  }

  #untilDurable(revision: Revision, bytes: number): Promise<void> {
    if (revision <= this.#durable) return Promise.resolve();
    this.#pendingBytes += bytes;
    return new Promise((resolve, reject) => this.#waiters.push({ revision, bytes, resolve, reject }));
  }

  #settle(revision: Revision): void {
    this.#durable = revision;
    const open = this.#waiters.findIndex((waiter) => waiter.revision > revision);
    const settled = open === -1 ? this.#waiters : this.#waiters.slice(0, open);
    this.#waiters = open === -1 ? [] : this.#waiters.slice(open);
    for (const waiter of settled) {
      this.#pendingBytes -= waiter.bytes;
      waiter.resolve();
    }
    this.#hub.notify();
    void this.#trim();
    this.#compactLater();
  }

  #fail(error: StoreError): void {
    this.#failure ??= error;
    this.#rejectWaiting(error);
  }

  /** Rejects waiting calls. Their commits stay on the timeline, and later transactions depend on them. */
  #rejectWaiting(error: StoreError): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#pendingBytes = 0;
    for (const waiter of waiters) waiter.reject(error);
  }

  /** Compacts the history if it exceeds its limits. */
  async #trim(): Promise<void> {
    if (this.#trimming || this.#leases === undefined || !this.#outgrown()) return;
    this.#trimming = true;
    try {
      while (this.#outgrown() && this.#failure === undefined && this.#closing === undefined) {
        const target = this.#timeline.trimTarget(this.#durable, this.#historyRevisions, HISTORY_BYTES);
        if (target <= this.compactRevision) return;
        await this.compact(target);
      }
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    } finally {
      this.#trimming = false;
    }
  }

  /** Compacts the present history once it is old enough, and then what was added since, until there is no history. */
  #compactLater(): void {
    const isLeader = this.#leases !== undefined && this.#failure === undefined;
    if (!isLeader || this.#historyAgeMs === undefined || this.#cancelAging !== undefined) return;
    const revision = this.#durable;
    if (revision === this.compactRevision || this.#closing !== undefined) return;
    this.#cancelAging = this.#clock.schedule(this.#historyAgeMs, () => {
      this.#compactAged(revision).finally(() => {
        this.#cancelAging = undefined;
        this.#compactLater();
      });
    });
  }

  async #compactAged(revision: Revision): Promise<void> {
    try {
      await this.compact(revision);
    } catch (error) {
      // On a full disk the history stays. It is compacted later.
      if (!(error instanceof StoreError)) throw error;
    }
  }

  #outgrown(): boolean {
    const revisions = this.#durable - this.compactRevision;
    const { historyBytes } = this.#timeline;
    const tooMany = revisions > this.#historyRevisions * HISTORY_SLACK;
    return (
      tooMany ||
      (historyBytes > HISTORY_BYTES * HISTORY_SLACK && historyBytes - this.#pendingBytes > HISTORY_BYTES)
    );
  }

  async #compactTo(revision: Revision): Promise<void> {
    while (this.compactRevision < revision) {
      const folded = await this.#journal.fold(revision);
      this.#hub.compacting(folded);
      this.#timeline.compact(folded);
    }
  }

  #leaseHandle(id: LeaseId, ttlMs: number): Lease {
    return {
      id,
      ttlMs,
      keepAlive: async () => {
        this.#checkOpen();
        this.#ownLeases().keepAlive(id);
      },
      revoke: async () => {
        this.#checkWritable();
        await this.#commit(deletions(this.#ownLeases().remove(id)));
      },
    };
  }

  /**
   * Deletes the keys of an expired lease in the background. If the disk fails, they stay, and their lease restarts at the
   * next opening.
   */
  #expire(id: LeaseId): void {
    const keys = this.#ownLeases().remove(id);
    if (this.#failure !== undefined) return;
    this.#commit(deletions(keys)).catch(() => {});
  }
}

const EVERYTHING = { prefix: "", after: "", limit: Number.POSITIVE_INFINITY } as const;

function future(revision: Revision, durable: Revision): StoreError {
  return new StoreError("FUTURE_REVISION", `revision ${revision} is yet to come: the latest is ${durable}`);
}
