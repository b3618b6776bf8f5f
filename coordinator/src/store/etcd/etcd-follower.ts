import { type MonotonicClock, pause } from "@forage/common/clock";
import { linkSignals } from "@forage/common/link-signals";
import type { Timeline } from "../core/timeline.ts";
import { corrupt } from "../format/corrupt.ts";
import { CHAIN_START, type Chain } from "../format/entry-codec.ts";
import type { Base, StoreMeta } from "../format/meta-codec.ts";
import { type Rebuilt, rebuild } from "../format/rebuild.ts";
import { encodeRecord, recordKey } from "../format/record-codec.ts";
import type { Revision, StoreHealth } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { acquireLead, asStoreError, firstAnswer } from "./acquire-lead.ts";
import { beginWriting, type StoreOpening, writeFirst } from "./begin-writing.ts";
import { compactHistory } from "./compact-history.ts";
import type { EtcdOp } from "./etcd.ts";
import { ADVICE, type EtcdStore, EtcdStoreEngine } from "./etcd-engine.ts";
import { EtcdError } from "./etcd-error.ts";
import { EtcdJournal, foldGroups } from "./etcd-journal.ts";
import type { RetryTiming } from "./insist.ts";
import { deletionOf, deletionOfParts, HEAD_KEY, putsOf } from "./layout.ts";
import type { Leader, Leadership } from "./leadership.ts";
import { type HistoryEnd, readHistoryEnd } from "./log-reader.ts";
import type { EtcdStoreOptions } from "./options.ts";
import { type Content, readStore, type UnfinishedFold } from "./read-store.ts";

/** A store in etcd that follows the writes of another coordinator until this one leads. */
export interface FollowedStore extends EtcdStore {
  /** The milliseconds since the store was last known to be current. 0 while this coordinator leads. */
  readonly behindMs: number;
  /**
   * Waits until no other coordinator leads, and takes the lead, after which the store accepts writes. Calls `onLeader` with
   * the current leader, perhaps several times, and `onVacant` when there is no leader. Rejects when the store can't be
   * followed any more, or is closed.
   */
  lead(onLeader: (leader: Leader) => void, onVacant?: () => void): Promise<void>;
}

/** The interval at which the head is read without a notification, because a watch can end without one. */
const LOOK_EVERY_MS = 1_000;

/** Opens the store read-only and follows it. @throws StoreError MISSING if there is no store. */
export async function followEtcdStore(options: EtcdStoreOptions): Promise<FollowedStore> {
  const { etcd, clock, callClock = clock } = options;
  try {
    const { outageMaxMs: _, ...calls } = await firstAnswer(options);
    const content = await readStore(etcd, calls);
    const { inspection, movedTo } = content;
    if (inspection.empty || movedTo !== undefined)
      throw new StoreError(
        "MISSING",
        movedTo === undefined ? "there is no store in etcd" : `the store was moved to ${movedTo}`,
      );
    if (inspection.problems.length > 0) throw corrupt(inspection.problems, ADVICE.refused);
    return new FollowedEngine({ options, calls, callClock }, rebuild(inspection), content);
  } catch (error) {
    etcd.close();
    options.onClosed?.();
    throw asStoreError(error);
  }
}

interface EtcdFollowerOptions {
  readonly options: EtcdStoreOptions;
  readonly calls: Omit<RetryTiming, "outageMaxMs">;
  readonly callClock: MonotonicClock;
}

/** The state that the engine shares with its journal. It is created before both. */
interface Following {
  leader: string;
  failure: StoreError | undefined;
  leadership: Leadership | undefined;
  stopCompacting: () => void;
  /** Aborted when the engine stops following. */
  readonly ending: AbortController;
  /** Aborted when the store is closed. */
  readonly closing: AbortController;
}

class FollowedEngine extends EtcdStoreEngine implements FollowedStore {
  readonly #options: EtcdFollowerOptions;
  readonly #following: Following;
  readonly #failed = Promise.withResolvers<never>();
  readonly #timeline: Timeline;
  #meta: StoreMeta;
  #base: Base;
  #chains: Chain[];
  #headRevision: bigint;
  #foldTarget: Base | undefined;
  /** The remaining operations of an unfinished fold that was completed in memory when the store was read. */
  readonly #unfinishedFold: UnfinishedFold | undefined;
  #syncedMs: number;
  readonly #loop: Promise<void>;

  constructor(options: EtcdFollowerOptions, rebuilt: Rebuilt, content: Content) {
    const { etcd, clock, historyRevisions, historyAgeMs, newId, onClosed } = options.options;
    const { timeline, meta, base, chains } = rebuilt;
    const following: Following = {
      ...{ leader: "another coordinator", failure: undefined, leadership: undefined },
      ...{ stopCompacting: () => {}, ending: new AbortController(), closing: new AbortController() },
    };
    const close = (): void => {
      following.ending.abort();
      following.closing.abort();
      following.stopCompacting();
      etcd.close();
      onClosed?.();
    };
    super(
      {
        clock,
        timeline,
        leaseIdPrefix: undefined,
        openJournal: () => refusingJournal(following),
        ...(historyRevisions !== undefined && { historyRevisions }),
        ...(historyAgeMs !== undefined && { historyAgeMs }),
      },
      {
        ...{ etcd, calls: options.calls, close, meta, lineage: meta.lineage ?? newId() },
        leadership: () => following.leadership,
      },
    );
    this.#options = options;
    this.#following = following;
    this.#timeline = timeline;
    this.#meta = meta;
    this.#base = base;
    this.#chains = [...chains];
    this.#headRevision = content.headRevision;
    this.#unfinishedFold = content.unfinishedFold;
    this.#syncedMs = this.#monotonicMs();
    this.#failed.promise.catch(() => {});
    this.#loop = this.#follow();
  }

  get behindMs(): number {
    return this.#following.leadership === undefined ? this.#monotonicMs() - this.#syncedMs : 0;
  }

  async lead(onLeader: (leader: Leader) => void, onVacant?: () => void): Promise<void> {
    const { options, calls, callClock } = this.#options;
    const following = this.#following;
    const onStandby = (leader: Leader): void => {
      following.leader = leader.name;
      onLeader(leader);
    };
    const taking = acquireLead(
      { ...options, onStandby, onVacant },
      { ...calls, signal: following.closing.signal },
    );
    const { leadership } = await Promise.race([taking, this.#failed.promise]).catch((error: unknown) => {
      following.closing.abort();
      void taking.then((late) => late.leadership.release()).catch(() => {});
      throw asStoreError(error);
    });
    try {
      following.ending.abort();
      await this.#loop;
      if (following.failure !== undefined) throw following.failure;
      await this.#begin({ options, calls, leadership, id: options.newId() });
      following.leadership = leadership;
      following.stopCompacting = compactHistory(options.etcd, callClock);
    } catch (error) {
      await leadership.release();
      throw asStoreError(error);
    }
  }

  /** Begins to write at the end of the history, after no other coordinator can write any more. */
  async #begin(opening: StoreOpening): Promise<void> {
    const { etcd } = this.#options.options;
    const { calls } = opening;
    this.#adopt(await readHistoryEnd(etcd, calls, this.#known()));
    const meta = { ...this.#meta, lineage: this.lineage, opens: this.#meta.opens + 1 };
    const { head } = this.#timeline;
    const headRevision = await beginWriting(opening, this.#headRevision, meta, {
      head,
      chains: this.#chains,
    });
    await this.#finishFold(opening, headRevision);
    const parts = { ...calls, etcd, leadership: opening.leadership, headRevision, store: meta.id };
    const { id } = opening;
    const history = { base: this.#base, chains: this.#chains, opening: id };
    this.leadFrom(
      `${meta.opens}.`,
      (listener, timeline) => new EtcdJournal({ ...parts, ...history, timeline }, listener),
    );
  }

  /** Finishes an interrupted fold in etcd. The timeline still contains the log up to its target. */
  async #finishFold(opening: StoreOpening, headRevision: bigint): Promise<void> {
    const target = this.#foldTarget;
    if (target === undefined) return;
    const known = this.#unfinishedFold;
    if (known?.base.revision === target.revision) {
      for (const group of foldGroups(known.ops, known.from, known.base))
        await writeFirst(opening, headRevision, group);
      return;
    }
    const ops: EtcdOp[] = [];
    for (const [key, { after }] of this.#timeline.changed(target.revision)) {
      if (after.value === undefined) ops.push(deletionOf(recordKey(key)));
      else {
        const { dbKey, value } = encodeRecord(after);
        const puts = putsOf(dbKey, value);
        ops.push(...puts, deletionOfParts(dbKey, puts.length));
      }
    }
    for (const group of foldGroups(ops, this.#base.revision, target))
      await writeFirst(opening, headRevision, group);
    this.#moveBase(target, []);
  }

  async #follow(): Promise<void> {
    const { options, calls: known } = this.#options;
    const { ending } = this.#following;
    const { etcd } = options;
    const calls = { ...known, signal: ending.signal };
    while (!ending.signal.aborted) {
      try {
        await this.#untilMoved();
        if (ending.signal.aborted) return;
        this.#adopt(await readHistoryEnd(etcd, calls, this.#known()));
      } catch (error) {
        if (ending.signal.aborted) return;
        // etcd's history was compacted between two pages.
        if (error instanceof EtcdError && error.code === "COMPACTED") continue;
        const cause = asStoreError(error);
        this.#following.failure = new StoreError(
          "IO_ERROR",
          `the store can't be followed: ${cause.message}`,
          { cause },
        );
        this.#failed.reject(this.#following.failure);
        return;
      }
    }
  }

  /** Resolves when the head has changed, or after an interval. */
  async #untilMoved(): Promise<void> {
    const { etcd } = this.#options.options;
    const enough = new AbortController();
    const { signal, unlink } = linkSignals(this.#following.ending.signal, enough.signal);
    const timer = pause(this.#options.callClock, LOOK_EVERY_MS, signal);
    await Promise.race([timer, etcd.changed(HEAD_KEY, this.#headRevision, signal).catch(() => timer)]);
    enough.abort();
    unlink();
  }

  #adopt({ meta, base, foldTarget, headRevision, entries }: HistoryEnd): void {
    const { id, epoch, lineage = this.lineage } = meta;
    if (id !== this.id || epoch !== this.epoch || lineage !== this.lineage)
      throw new StoreError("CORRUPT", "the store was replaced by another one");
    this.#meta = meta;
    this.#foldTarget = foldTarget;
    this.#headRevision = headRevision;
    for (const entry of entries) this.#chains.push(entry.chain);
    this.#moveBase(base, entries);
    this.#syncedMs = this.#monotonicMs();
  }

  /**
   * Updates the base. After an unfinished fold was completed in memory, the base in memory is ahead of the one in etcd for
   * a while.
   */
  #moveBase(base: Base, entries: HistoryEnd["entries"]): void {
    this.follow(entries, base.revision);
    if (base.revision <= this.#base.revision) return;
    this.#chains.splice(0, base.revision - this.#base.revision);
    this.#base = base;
  }

  #known(): { readonly revision: Revision; readonly chain: Chain } {
    return { revision: this.#timeline.head, chain: this.#chains.at(-1) ?? CHAIN_START };
  }

  #monotonicMs(): number {
    return this.#options.callClock.monotonicMs();
  }
}

/** Returns the journal of a follower, which rejects all commits. */
function refusingJournal(following: Following) {
  const refused = (): StoreError =>
    new StoreError("UNAVAILABLE", `${following.leader} leads, and only the leader writes`);
  return {
    append: () => {
      throw refused();
    },
    fold: async () => {
      throw refused();
    },
    health: (): StoreHealth => {
      const { failure } = following;
      if (failure !== undefined) return { status: "read-only", reason: "io-error", message: failure.message };
      return { status: "read-only", reason: "unavailable", message: refused().message };
    },
    close: async () => {},
  };
}
