import type { MonotonicClock } from "@forage/common/clock";
import type { Clock } from "../clock.ts";
import type { JournalListener } from "../core/journal.ts";
import { StoreEngine, type StoreEngineParts } from "../core/store-engine.ts";
import type { DurableStore } from "../durable-store.ts";
import { type BackupInfo, writeBackup } from "../format/backup.ts";
import { corrupt } from "../format/corrupt.ts";
import { CHAIN_START, entryKey } from "../format/entry-codec.ts";
import { BASE_KEY, encodeBase, encodeStoreMeta, STORE_KEY, type StoreMeta } from "../format/meta-codec.ts";
import { type Rebuilt, rebuild } from "../format/rebuild.ts";
import type { RestoreResult } from "../format/restored.ts";
import { StoreError } from "../store-error.ts";
import { checkMembers } from "./check-members.ts";
import { compactHistory } from "./compact-history.ts";
import type { Etcd, EtcdOp } from "./etcd.ts";
import { EtcdError } from "./etcd-error.ts";
import { EtcdJournal, foldGroups } from "./etcd-journal.ts";
import { encodeHead } from "./head-record.ts";
import { type Insistence, insist } from "./insist.ts";
import { HEAD_KEY, LEADER_KEY } from "./layout.ts";
import { type Leader, Leadership, lost } from "./leadership.ts";
import { Outage } from "./outage.ts";
import { type Content, readStore } from "./read-store.ts";
import { markMoved, writeRestored } from "./write-restored.ts";

export interface EtcdStoreOptions {
  /** The store's keys only, see `prefixed`. Closed with the store, and when the opening fails. */
  readonly etcd: Etcd;
  /** This coordinator, as others see it. */
  readonly self: Leader;
  /** The clock of leases on the store's own records. */
  readonly clock: Clock;
  /** The clock of calls to etcd. Default: `clock`. */
  readonly callClock?: MonotonicClock;
  /** A number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Makes random ids: of the store, its lineage and this opening. */
  readonly newId: () => string;
  /** Called, perhaps several times, while another coordinator leads. It may throw to end the opening. */
  readonly onStandby?: (leader: Leader) => void;
  /**
   * Whether a store is made where there is none. "refuse": the opening fails with MISSING. "require": it fails with NOT_EMPTY
   * where there is one. "allow" by default.
   */
  readonly create?: "allow" | "refuse" | "require";
  /** Called once, when the store is closed or the opening has failed. */
  readonly onClosed?: () => void;
  readonly log?: (fields: Readonly<Record<string, unknown>>, message: string) => void;
  /** Revisions of history to keep; HISTORY_REVISIONS by default. */
  readonly historyRevisions?: number;
  /** The time that writes wait for etcd before they fail; WRITE_WAIT_MS by default. */
  readonly writeWaitMs?: number;
  /** Cancels the opening. */
  readonly signal?: AbortSignal;
}

/** The time for etcd to answer while the store is opened. The service manager starts the coordinator again after it. */
const OPEN_OUTAGE_MAX_MS = 30_000;

interface Opening extends Lead {
  readonly options: EtcdStoreOptions;
  readonly id: string;
}

/** A store in etcd. */
export interface EtcdStore extends DurableStore {
  /** Marks the store as moved to another place. It can't be opened from then on. */
  retire(to: string): Promise<void>;
}

/**
 * Opens the store in etcd, or makes one there, once no other coordinator leads. CORRUPT, naming the records, if anything is
 * not as it was written, and then it is left as it was found.
 */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  let lead: Lead | undefined;
  try {
    lead = await takeLead(options);
    return await openAsLeader({ options, ...lead, id: options.newId() });
  } catch (error) {
    await lead?.leadership.release();
    options.etcd.close();
    options.onClosed?.();
    throw asStoreError(error);
  }
}

/** Makes a store of a backup, see `writeRestored`. */
export async function restoreEtcdStore(
  options: EtcdStoreOptions,
  backup: { readonly file: string; readonly epoch?: number },
): Promise<RestoreResult> {
  const { etcd, onClosed } = options;
  let lead: Lead | undefined;
  try {
    lead = await takeLead(options);
    return await writeRestored({ etcd, ...lead, ...backup });
  } catch (error) {
    throw asStoreError(error);
  } finally {
    await lead?.leadership.release();
    etcd.close();
    onClosed?.();
  }
}

interface Lead {
  readonly calls: Insistence;
  readonly leadership: Leadership;
}

async function takeLead(options: EtcdStoreOptions): Promise<Lead> {
  const { etcd, clock, callClock = clock, random, self, onStandby = () => {} } = options;
  const signal = options.signal ?? new AbortController().signal;
  const outage = new Outage(callClock, options.writeWaitMs);
  const calls = { clock: callClock, random, outage, signal, outageMaxMs: OPEN_OUTAGE_MAX_MS };
  const members = await insist(() => checkAnswering(etcd), calls);
  options.log?.({ members: members.map(({ endpoint, type }) => ({ endpoint, type })) }, "etcd answers");
  return { calls, leadership: await Leadership.take({ etcd, self, ...calls }, onStandby) };
}

async function openAsLeader(opening: Opening): Promise<EtcdStore> {
  const { options, calls, leadership, id } = opening;
  const { etcd, clock, historyRevisions } = options;
  const content = await readSound(opening);
  const rebuilt = rebuild(content.inspection);
  const lineage = rebuilt.meta.lineage ?? options.newId();
  const meta = { ...rebuilt.meta, lineage, opens: rebuilt.meta.opens + 1 };
  const { unfinishedFold: fold } = content;
  let headRevision = await beginWriting(opening, content.headRevision, meta, rebuilt);
  if (fold !== undefined)
    for (const ops of foldGroups(fold.ops, fold.from, fold.base))
      headRevision = await writeFirst(opening, headRevision, ops);
  const { timeline } = rebuilt;
  options.log?.({ store: meta.id, epoch: meta.epoch, revision: timeline.head }, "store opened");
  const journalParts = { ...calls, ...rebuilt, etcd, leadership, headRevision, store: meta.id, opening: id };
  const engineParts = {
    clock,
    timeline,
    leaseIdPrefix: `${meta.opens}.`,
    openJournal: (listener: JournalListener) => new EtcdJournal(journalParts, listener),
    ...(historyRevisions !== undefined && { historyRevisions }),
  };
  const stopCompacting = compactHistory(etcd, calls.clock);
  const close = (): void => {
    stopCompacting();
    etcd.close();
    options.onClosed?.();
  };
  return new EtcdStoreEngine(engineParts, { etcd, calls, leadership, meta, lineage, close });
}

interface Own extends Lead {
  readonly etcd: Etcd;
  readonly close: () => void;
}

class EtcdStoreEngine extends StoreEngine implements EtcdStore {
  readonly id: string;
  readonly epoch: number;
  readonly lineage: string;
  readonly #own: Own;
  #released: Promise<void> | undefined;

  constructor(parts: StoreEngineParts, own: Own & { meta: StoreMeta; lineage: string }) {
    super(parts);
    this.#own = own;
    this.id = own.meta.id;
    this.epoch = own.meta.epoch;
    this.lineage = own.lineage;
  }

  async backup(file: string): Promise<BackupInfo> {
    const { records, revision } = await this.range("");
    return writeBackup(file, { store: this.id, epoch: this.epoch, revision }, records);
  }

  async verify(): Promise<void> {
    await this.range("", { limit: 1 });
    const acknowledged = this.revision;
    const { inspection, head } = await readStore(this.#own.etcd, this.#own.calls);
    const problems = [...inspection.problems];
    if ((head?.revision ?? 0) < acknowledged)
      problems.push(`the head is at revision ${head?.revision ?? 0}, before ${acknowledged}`);
    if (problems.length > 0) throw corrupt(problems, ADVICE.serving);
  }

  retire(to: string): Promise<void> {
    return markMoved(this.#own, to);
  }

  override close(): Promise<void> {
    this.#released ??= super.close().finally(() => this.#own.close());
    return this.#released;
  }
}

/** The content of a sound store, or of one that was made just now. */
async function readSound(opening: Opening): Promise<Content> {
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
    { kind: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { kind: "put", key: BASE_KEY, value: encodeBase(base) },
    { kind: "put", key: HEAD_KEY, value: headOf(meta.id, 0, CHAIN_START, opening.id) },
  ]);
  const made = { meta, base, empty: false, records: [], entries: [], problems: [] };
  return { ...content, inspection: made, headRevision };
}

/** Counts the opening, removes what an earlier leader left after the head, and makes the head this opening's own. */
function beginWriting(
  opening: Opening,
  headRevision: bigint,
  meta: StoreMeta,
  { timeline, chains }: Rebuilt,
): Promise<bigint> {
  const { head } = timeline;
  return writeFirst(opening, headRevision, [
    { kind: "put", key: STORE_KEY, value: encodeStoreMeta(meta) },
    { kind: "delete", from: entryKey(head + 1), to: "l0" },
    { kind: "put", key: HEAD_KEY, value: headOf(meta.id, head, chains.at(-1) ?? CHAIN_START, opening.id) },
  ]);
}

/** Writes before the journal does, and returns etcd's revision of the head. */
async function writeFirst(
  { options: { etcd }, calls, leadership }: Opening,
  headRevision: bigint,
  ops: readonly EtcdOp[],
): Promise<bigint> {
  const head = ops.find((op) => op.kind === "put" && op.key === HEAD_KEY);
  const result = await insist(
    () =>
      etcd.txn({
        compares: [
          { kind: "createRevision", key: LEADER_KEY, revision: leadership.createRevision },
          { kind: "modRevision", key: HEAD_KEY, revision: headRevision },
        ],
        ops,
        otherwise: [LEADER_KEY, HEAD_KEY],
      }),
    calls,
  );
  if (result.succeeded) return head === undefined ? headRevision : result.revision;
  const [leader, found] = result.found;
  // A try without an answer may have been the one that took effect.
  const isMoved = found !== undefined && found.modRevision !== headRevision;
  if (head?.kind === "put" && isMoved && found.value.equals(head.value)) return found.modRevision;
  throw lost(leader);
}

function headOf(store: string, revision: number, chain: Buffer, opening: string): Buffer {
  return encodeHead({ store, revision, chain, opening });
}

async function checkAnswering(etcd: Etcd) {
  const members = await checkMembers(etcd);
  if (members.some(({ type }) => type === "up")) return members;
  const reasons = members.map((member) => (member.type === "down" ? member.reason : ""));
  throw new EtcdError("UNAVAILABLE", reasons.join("; "));
}

function asStoreError(error: unknown): StoreError {
  if (!(error instanceof EtcdError)) return StoreError.from(error);
  const code = error.retryable ? "UNAVAILABLE" : "IO_ERROR";
  return new StoreError(code, `etcd: ${error.message}`, { cause: error });
}

const ADVICE = {
  refused: "It is left as it was found. Restore a backup under another prefix",
  serving:
    "The coordinator serves intact state from memory: make a backup now and restore it under another prefix",
};
