import { randomUUID } from "node:crypto";
import { statfs } from "node:fs/promises";
import type { Log } from "@forage/common/log";
import type { Clock } from "../clock.ts";
import type { JournalListener } from "../core/journal.ts";
import { StoreEngine, type StoreEngineOptions } from "../core/store-engine.ts";
import type { DurableStore } from "../durable-store.ts";
import { type BackupInfo, writeBackup } from "../format/backup.ts";
import { ADVICE, corrupt } from "../format/corrupt.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import type { Head } from "../format/findings.ts";
import { type Inspection, lastRevision } from "../format/findings.ts";
import { BASE_KEY, encodeBase, encodeStoreMeta, STORE_KEY, type StoreMeta } from "../format/meta-codec.ts";
import { type Rebuilt, rebuild } from "../format/rebuild.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Database } from "./database.ts";
import { type Disk, SYSTEM_DISK } from "./disk.ts";
import { Evidence } from "./evidence.ts";
import { type StoreFiles, storeFiles } from "./files.ts";
import { HeadFile } from "./head-file.ts";
import { inspect } from "./inspect.ts";
import { LevelJournal } from "./level-journal.ts";
import { Ownership } from "./ownership.ts";
import { checkRestored } from "./restore.ts";
import { clearSalvage, finishSalvage } from "./salvage-files.ts";
import { BALLAST_BYTES, FREE_SPACE_MIN_BYTES, SpaceGuard } from "./space-guard.ts";

export interface LevelStoreOptions {
  /** The store's directory. It is created if it does not exist, and only its owner may read it. */
  readonly dir: string;
  readonly clock: Clock;
  /** Logs the opened store's properties. */
  readonly log?: Log["info"];
  /** Free space for us on the disk of `dir`. */
  readonly freeBytes?: () => Promise<number>;
  /** The free space below which the store is read-only. FREE_SPACE_MIN_BYTES by default. */
  readonly freeSpaceMinBytes?: number;
  /** Size of the file that is dropped to open on a full disk; BALLAST_BYTES by default. */
  readonly ballastBytes?: number;
  /** Revisions of history to keep; HISTORY_REVISIONS by default. */
  readonly historyRevisions?: number;
  /** Makes the random ids of a new store: its id and its lineage. */
  readonly newId?: () => string;
  /** Whether a store is made where there is none. "refuse": the opening fails with MISSING. "allow" by default. */
  readonly create?: "allow" | "refuse";
  /** The system's by default. */
  readonly disk?: Disk;
}

/** A store on the local disk. */
export type LevelStore = DurableStore;

/**
 * Opens the store in a directory, or makes one there. LOCKED if it is open already; CORRUPT, naming the records, if
 * anything is not as it was written, and then the files are left as they were found.
 */
export async function openLevelStore(options: LevelStoreOptions): Promise<LevelStore> {
  const files = storeFiles(options.dir);
  const disk = options.disk ?? SYSTEM_DISK;
  disk.makeDirectory(files.dir);
  const ownership = await Ownership.take(files.dir, disk);
  try {
    return await openOwned(options, files, ownership);
  } catch (error) {
    await ownership.release();
    throw StoreError.from(error);
  }
}

async function openOwned(
  options: LevelStoreOptions,
  files: StoreFiles,
  ownership: Ownership,
): Promise<LevelStore> {
  const disk = options.disk ?? SYSTEM_DISK;
  const space = new SpaceGuard({
    disk,
    ballastFile: files.ballast,
    ballastBytes: options.ballastBytes ?? BALLAST_BYTES,
    minBytes: options.freeSpaceMinBytes ?? FREE_SPACE_MIN_BYTES,
    freeBytes: options.freeBytes ?? (() => freeBytesOf(files.dir)),
  });
  await space.makeRoom();
  checkRestored(files);
  finishSalvage(disk, files);
  const evidence = Evidence.keep(disk, files);
  const { db, rebuilt } = await openSound(options, files, evidence);
  try {
    const lineage = rebuilt.meta.lineage ?? (options.newId ?? randomUUID)();
    const meta = { ...rebuilt.meta, lineage, opens: rebuilt.meta.opens + 1 };
    const headFile = HeadFile.open(files.head, headOf(rebuilt), disk);
    await db.put(STORE_KEY, encodeStoreMeta(meta), { sync: true });
    evidence.discard();
    clearSalvage(disk, files);
    await space.loadBallast();
    const { timeline } = rebuilt;
    const opened = {
      event: "store-opened",
      dir: files.dir,
      store: meta.id,
      epoch: meta.epoch,
      revision: timeline.head,
    };
    options.log?.(opened);
    const { clock, historyRevisions } = options;
    const journalParts = { ...rebuilt, db, headFile, meta, space, clock };
    const engineParts = {
      clock,
      timeline,
      leaseIdPrefix: `${meta.opens}.`,
      openJournal: (listener: JournalListener) => new LevelJournal(journalParts, listener),
      ...(historyRevisions !== undefined && { historyRevisions }),
    };
    return new LevelStoreEngine(engineParts, { db, meta, lineage, ownership });
  } catch (error) {
    await db.close();
    throw error;
  }
}

class LevelStoreEngine extends StoreEngine implements LevelStore {
  readonly id: string;
  readonly epoch: number;
  readonly lineage: string;
  readonly #db: Database;
  readonly #ownership: Ownership;
  #released: Promise<void> | undefined;

  constructor(
    options: StoreEngineOptions,
    own: { db: Database; meta: StoreMeta; lineage: string; ownership: Ownership },
  ) {
    super(options);
    this.#db = own.db;
    this.#ownership = own.ownership;
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
    const acknowledged: Revision = this.revision;
    const snapshot = this.#db.snapshot();
    try {
      const inspection = await inspect(this.#db, undefined, snapshot);
      const problems = [...inspection.problems];
      const last = lastRevision(inspection);
      if (last < acknowledged) problems.push(`the log ends at revision ${last}, before ${acknowledged}`);
      if (problems.length > 0) throw corrupt(problems, ADVICE.serving);
    } finally {
      await snapshot.close();
    }
  }

  override close(): Promise<void> {
    this.#released ??= super.close().finally(() => this.#ownership.release());
    return this.#released;
  }
}

async function openSound(
  options: LevelStoreOptions,
  files: StoreFiles,
  evidence: Evidence,
): Promise<{ readonly db: Database; readonly rebuilt: Rebuilt }> {
  let db: Database | undefined;
  try {
    const head = HeadFile.read(files.head);
    db = await (options.disk ?? SYSTEM_DISK).openDatabase(files.database);
    return { db, rebuilt: await readSound(db, head, options) };
  } catch (error) {
    await db?.close();
    if (error instanceof StoreError && error.code === "LOCKED") evidence.withdraw();
    else evidence.putBack();
    throw error;
  }
}

/** The state of a database that is sound, or of one that was made just now. */
async function readSound(
  db: Database,
  head: Head | undefined,
  { dir, create, newId = randomUUID }: LevelStoreOptions,
): Promise<Rebuilt> {
  const inspection = await inspect(db, head);
  if (head !== undefined || isUntouched(inspection)) return rebuild(inspection);
  if (!inspection.empty) {
    throw corrupt([
      ...inspection.problems,
      "the HEAD file is missing: whether the end of the log is missing too is unknown",
    ]);
  }
  if (create === "refuse") throw new StoreError("MISSING", `there is no store in ${dir}`);
  const meta = { id: newId(), epoch: 1, opens: 0, lineage: newId() };
  const base = { revision: 0, chain: CHAIN_START, count: 0, sum: 0 };
  await db
    .batch()
    .put(STORE_KEY, encodeStoreMeta(meta))
    .put(BASE_KEY, encodeBase(base))
    .write({ sync: true });
  return rebuild({ meta, base, empty: false, records: [], entries: [], problems: [] });
}

/** Reports whether the store was created but never written to: creation ended before the HEAD file. */
function isUntouched({ base, records, entries, meta }: Inspection): boolean {
  return meta?.opens === 0 && base?.revision === 0 && records.length === 0 && entries.length === 0;
}

function headOf({ meta, timeline, chains }: Rebuilt): Head {
  return { store: meta.id, revision: timeline.head, chain: chains.at(-1) ?? CHAIN_START };
}

async function freeBytesOf(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir);
  return bavail * bsize;
}
