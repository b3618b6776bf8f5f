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
import { beginWriting, type Opening, writeFirst } from "./begin-writing.ts";
import { compactHistory } from "./compact-history.ts";
import type { EtcdOp } from "./etcd.ts";
import { ADVICE, type EtcdStore, EtcdStoreEngine } from "./etcd-engine.ts";
import { EtcdError } from "./etcd-error.ts";
import { EtcdJournal, foldGroups } from "./etcd-journal.ts";
import type { Insistence } from "./insist.ts";
import { deletionOf, deletionOfParts, HEAD_KEY, putsOf } from "./layout.ts";
import type { Leader, Leadership } from "./leadership.ts";
import { type HistoryEnd, readHistoryEnd } from "./log-reader.ts";
import type { EtcdStoreOptions } from "./options.ts";
import { type Content, readStore, type UnfinishedFold } from "./read-store.ts";
import { asStoreError, firstAnswer, takeLead } from "./take-lead.ts";

/** A store in etcd to which another coordinator writes, until this one leads. */
export interface FollowedStore extends EtcdStore {
  /** Milliseconds since the store was last known to be complete. 0 when this coordinator leads. */
  readonly behindMs: number;
  /**
   * Waits until no other coordinator leads, and takes the lead: the store then takes writes. `onLeader` is called, perhaps
   * several times, with the coordinator that leads, and `onVacant` when none does. Rejects when the store can't be followed any more, or is closed.
   */
  lead(onLeader: (leader: Leader) => void, onVacant?: () => void): Promise<void>;
}

/** A watch can end without a message, so the head is read again at times. */
const LOOK_EVERY_MS = 1_000;

/**
 * Opens the store for reading and follows it.
 * @throws StoreError MISSING when there is none yet.
 */
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

interface FollowerParts {
  readonly options: EtcdStoreOptions;
  readonly calls: Omit<Insistence, "outageMaxMs">;
  readonly callClock: MonotonicClock;
}

/** The state that the engine shares with its journal, which exists before it. */
interface Following {
  leader: string;
  failure: StoreError | undefined;
  leadership: Leadership | undefined;
  stopCompacting: () => void;
  /** Aborted when the engine no longer follows. */
  readonly ending: AbortController;
  /** Aborted when the store is closed. */
  readonly closing: AbortController;
}

class FollowedEngine extends EtcdStoreEngine implements FollowedStore {
  readonly #parts: FollowerParts;
  readonly #following: Following;
  readonly #failed = Promise.withResolvers<never>();
  readonly #timeline: Timeline;
  #meta: StoreMeta;
  #base: Base;
  #chains: Chain[];
  #headRevision: bigint;
  #foldTarget: Base | undefined;
  /** The rest of a fold that the first reading has finished in memory. */
  readonly #unfinishedFold: UnfinishedFold | undefined;
  #syncedMs: number;
  readonly #loop: Promise<void>;

  constructor(parts: FollowerParts, rebuilt: Rebuilt, content: Content) {
    const { etcd, clock, historyRevisions, newId, onClosed } = parts.options;
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
      },
      {
        ...{ etcd, calls: parts.calls, close, meta, lineage: meta.lineage ?? newId() },
        leadership: () => following.leadership,
      },
    );
    this.#parts = parts;
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
    const { options, calls, callClock } = this.#parts;
    const following = this.#following;
    const onStandby = (leader: Leader): void => {
      following.leader = leader.name;
      onLeader(leader);
    };
    const taking = takeLead(
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

  /** Takes over the writing at the end of the history, to which no other coordinator can add any more. */
  async #begin(opening: Opening): Promise<void> {
    const { etcd } = this.#parts.options;
    const { calls } = opening;
    this.#take(await readHistoryEnd(etcd, calls, this.#known()));
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

  /** Finishes a fold that was cut off: the log up to its target is in the timeline still. */
  async #finishFold(opening: Opening, headRevision: bigint): Promise<void> {
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
    const { options, calls: known } = this.#parts;
    const { ending } = this.#following;
    const { etcd } = options;
    const calls = { ...known, signal: ending.signal };
    while (!ending.signal.aborted) {
      try {
        await this.#untilMoved();
        if (ending.signal.aborted) return;
        this.#take(await readHistoryEnd(etcd, calls, this.#known()));
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

  /** Resolves when the head has moved, and at times without that. */
  async #untilMoved(): Promise<void> {
    const { etcd } = this.#parts.options;
    const enough = new AbortController();
    const { signal, unlink } = linkSignals(this.#following.ending.signal, enough.signal);
    const timer = pause(this.#parts.callClock, LOOK_EVERY_MS, signal);
    await Promise.race([timer, etcd.changed(HEAD_KEY, this.#headRevision, signal).catch(() => timer)]);
    enough.abort();
    unlink();
  }

  #take({ meta, base, foldTarget, headRevision, entries }: HistoryEnd): void {
    const { id, epoch, lineage = this.lineage } = meta;
    if (id !== this.id || epoch !== this.epoch || lineage !== this.lineage)
      throw new StoreError("CORRUPT", "another store was restored in its place");
    this.#meta = meta;
    this.#foldTarget = foldTarget;
    this.#headRevision = headRevision;
    for (const entry of entries) this.#chains.push(entry.chain);
    this.#moveBase(base, entries);
    this.#syncedMs = this.#monotonicMs();
  }

  /** The base of a fold that the first reading has finished in memory is ahead of the one in etcd for a while. */
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
    return this.#parts.callClock.monotonicMs();
  }
}

/** The journal of an engine that must not write. */
function refusingJournal(following: Following) {
  const refused = (): StoreError =>
    new StoreError("UNAVAILABLE", `${following.leader} leads: it alone writes`);
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
