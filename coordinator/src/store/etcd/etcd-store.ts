import type { JournalListener } from "../core/journal.ts";
import { corrupt } from "../format/corrupt.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import { BASE_KEY, encodeBase, encodeStoreMeta, STORE_KEY } from "../format/meta-codec.ts";
import { rebuild } from "../format/rebuild.ts";
import type { RestoreResult } from "../format/restored.ts";
import { StoreError } from "../store-error.ts";
import { acquireLead, asStoreError, type Lead } from "./acquire-lead.ts";
import { beginWriting, headOf, type StoreOpening, writeFirst } from "./begin-writing.ts";
import { compactHistory } from "./compact-history.ts";
import { ADVICE, type EtcdStore, EtcdStoreEngine } from "./etcd-engine.ts";
import { EtcdJournal, foldGroups } from "./etcd-journal.ts";
import { HEAD_KEY } from "./layout.ts";
import type { EtcdStoreOptions } from "./options.ts";
import { type Content, readStore } from "./read-store.ts";
import { writeRestored } from "./write-restored.ts";

export type { EtcdStore } from "./etcd-engine.ts";
export type { EtcdStoreOptions } from "./options.ts";

interface LeaderOpening extends StoreOpening {
  readonly options: EtcdStoreOptions;
}

/**
 * Opens or creates the store in etcd, after it has become the leader. Throws CORRUPT, naming the records, if anything
 * differs from what was written. The store is then not changed.
 */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  let lead: Lead | undefined;
  try {
    lead = await acquireLead(options);
    return await openAsLeader({ options, ...lead, id: options.newId() });
  } catch (error) {
    await lead?.leadership.release();
    options.etcd.close();
    options.onClosed?.();
    throw asStoreError(error);
  }
}

/** Creates a store from a backup, see `writeRestored`. */
export async function restoreEtcdStore(
  options: EtcdStoreOptions,
  backup: { readonly file: string; readonly epoch?: number },
): Promise<RestoreResult> {
  const { etcd, onClosed } = options;
  let lead: Lead | undefined;
  try {
    lead = await acquireLead(options);
    return await writeRestored({ etcd, ...lead, ...backup });
  } catch (error) {
    throw asStoreError(error);
  } finally {
    await lead?.leadership.release();
    etcd.close();
    onClosed?.();
  }
}

async function openAsLeader(opening: LeaderOpening): Promise<EtcdStore> {
  const { options, calls, leadership, id } = opening;
  const { etcd, clock, historyRevisions, historyAgeMs } = options;
  const content = await readSound(opening);
  const rebuilt = rebuild(content.inspection);
  const lineage = rebuilt.meta.lineage ?? options.newId();
  const meta = { ...rebuilt.meta, lineage, opens: rebuilt.meta.opens + 1 };
  const { unfinishedFold: fold } = content;
  let headRevision = await beginWriting(opening, content.headRevision, meta, {
    head: rebuilt.timeline.head,
    chains: rebuilt.chains,
  });
  if (fold !== undefined)
    for (const ops of foldGroups(fold.ops, fold.from, fold.base))
      headRevision = await writeFirst(opening, headRevision, ops);
  const { timeline } = rebuilt;
  options.log?.({ event: "store-opened", store: meta.id, epoch: meta.epoch, revision: timeline.head });
  const journalParts = { ...calls, ...rebuilt, etcd, leadership, headRevision, store: meta.id, opening: id };
  const engineParts = {
    clock,
    timeline,
    leaseIdPrefix: `${meta.opens}.`,
    openJournal: (listener: JournalListener) => new EtcdJournal(journalParts, listener),
    ...(historyRevisions !== undefined && { historyRevisions }),
    ...(historyAgeMs !== undefined && { historyAgeMs }),
  };
  const stopCompacting = compactHistory(etcd, calls.clock);
  const close = (): void => {
    stopCompacting();
    etcd.close();
    options.onClosed?.();
  };
  return new EtcdStoreEngine(engineParts, {
    ...{ etcd, calls, meta, lineage, close },
    leadership: () => leadership,
  });
}

/** Returns the content of an undamaged store, or of one that was just created. */
async function readSound(opening: LeaderOpening): Promise<Content> {
  const { options, calls } = opening;
  const content = await readStore(options.etcd, calls);
  if (content.movedTo !== undefined) {
    throw new StoreError(
      "MISSING",
      `the store was moved to ${content.movedTo}: set \`store\` in the configuration accordingly`,
    );
  }
  const { inspection } = content;
  if (!inspection.empty) {
    if (options.create === "require") throw new StoreError("NOT_EMPTY", "there is a store in etcd");
    if (inspection.problems.length > 0) throw corrupt(inspection.problems, ADVICE.refused);
    return content;
  }
  if (options.create === "refuse") throw new StoreError("MISSING", "there is no store in etcd");
  const meta = { id: options.newId(), epoch: 1, opens: 0, lineage: options.newId() };
  const base = { revision: 0, chain: CHAIN_START, count: 0, sum: 0 };
  const headRevision = await writeFirst(opening, 0n, [
    { type: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { type: "put", key: BASE_KEY, value: encodeBase(base) },
    { type: "put", key: HEAD_KEY, value: headOf(meta.id, 0, CHAIN_START, opening.id) },
  ]);
  const made = { meta, base, empty: false, records: [], entries: [], problems: [] };
  return { ...content, inspection: made, headRevision };
}
