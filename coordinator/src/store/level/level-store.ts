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
import { HISTORY_AGE_MS } from "../limits.ts";
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
  /** The store's directory. It is created if it does not exist, and is readable only by its owner. */
  readonly dir: string;
  readonly clock: Clock;
  /** Logs the opened store's properties. */
  readonly log?: Log["info"];
  /** Returns the free bytes on the disk of `dir` that this process may use. */
  readonly freeBytes?: () => Promise<number>;
  /** The free space below which the store is read-only, in bytes. Default: FREE_SPACE_MIN_BYTES. */
  readonly freeSpaceMinBytes?: number;
  /** The size of the file that is removed to open the store on a full disk. Default: BALLAST_BYTES. */
  readonly ballastBytes?: number;
  /** The number of revisions of history to keep. Default: HISTORY_REVISIONS. */
  readonly historyRevisions?: number;
  /** The time that a revision is kept. Default: HISTORY_AGE_MS. */
  readonly historyAgeMs?: number;
  /** Returns a random id for a new store: its id or its lineage. */
  readonly newId?: () => string;
  /** Whether to create a store if there is none. "refuse" makes the opening fail with MISSING. Default: "allow". */
  readonly create?: "allow" | "refuse";
  /** The disk. Default: the file system. */
  readonly disk?: Disk;
}

/** A store on the local disk. */
export type LevelStore = DurableStore;

/**
 * Opens or creates the store in a directory. Throws LOCKED if it is open already, and CORRUPT, naming the records, if
 * anything differs from what was written. The files are then not changed.
 */
export async function openLevelStore(options: LevelStoreOptions): Promise<LevelStore> {
  const files = storeFiles(options.dir);
  const disk = options.disk ?? SYSTEM_DISK;
  disk.makeDirectory(files.dir);
  const ownership = await Ownership.acquire(files.dir, disk);
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
    const { clock, historyRevisions, historyAgeMs = HISTORY_AGE_MS } = options;
    const journalParts = { ...rebuilt, db, headFile, meta, space, clock };
    const engineParts = {
      ...{ clock, timeline, historyAgeMs },
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
    const { versions, revision } = this.snapshot();
    return writeBackup(file, { store: this.id, epoch: this.epoch, revision }, versions);
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
    // Checked before LevelDB creates files. They would stay if the process ended, and no restore would accept the
    // directory.
    if (options.create === "refuse" && head === undefined && evidence.isOfNothing) throw missing(options.dir);
    db = await (options.disk ?? SYSTEM_DISK).openDatabase(files.database);
    return { db, rebuilt: await readSound(db, head, options) };
  } catch (error) {
    await db?.close();
    if (error instanceof StoreError && error.code === "LOCKED") evidence.withdraw();
    else evidence.putBack();
    throw error;
  }
}

function missing(dir: string): StoreError {
  return new StoreError("MISSING", `there is no store in ${dir}`);
}

/** Returns the state of an undamaged database, or of one that was just created. */
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
      "the HEAD file is missing, so the end of the log may be missing too",
    ]);
  }
  if (create === "refuse") throw missing(dir);
  const meta = { id: newId(), epoch: 1, opens: 0, lineage: newId() };
  const base = { revision: 0, chain: CHAIN_START, count: 0, sum: 0 };
  await db
    .batch()
    .put(STORE_KEY, encodeStoreMeta(meta))
    .put(BASE_KEY, encodeBase(base))
    .write({ sync: true });
  return rebuild({ meta, base, empty: false, records: [], entries: [], problems: [] });
}

/**
 * Reports whether the store was never written to, because its creation was interrupted before the HEAD file was created.
 */
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
