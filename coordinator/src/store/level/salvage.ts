import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Version } from "../core/timeline.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import type { Head } from "../format/findings.ts";
import { type Inspection, lastRevision } from "../format/findings.ts";
import { RESTORE_REVISION_GAP } from "../format/restored.ts";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Database } from "./database.ts";
import { type Disk, removeTree, SYSTEM_DISK } from "./disk.ts";
import { databaseFiles, Evidence, linkFiles } from "./evidence.ts";
import { type StoreFiles, storeFiles } from "./files.ts";
import { HeadFile } from "./head-file.ts";
import { inspect } from "./inspect.ts";
import { Ownership } from "./ownership.ts";
import { attemptDirs, clearAttempts, clearSalvage, finishSalvage, makingDir } from "./salvage-files.ts";
import { writeDatabase } from "./write-database.ts";

export interface SalvageReport {
  /** The defects of the readable part. Empty if nothing was lost and the history continues. */
  readonly problems: readonly string[];
  readonly records: number;
  readonly revision: Revision;
  readonly epoch: number;
  /** The directory to which the damaged database was moved. */
  readonly damaged: string;
}

export interface SalvageOptions {
  readonly dir: string;
  /** The disk. Default: the file system. */
  readonly disk?: Disk;
}

/**
 * Replaces a damaged store with one that contains all records that are proven to be unchanged. If records are lost, they
 * are listed, and the store gets a new epoch, as after a restore. The damaged files are kept.
 */
export async function salvageLevelStore({ dir, disk = SYSTEM_DISK }: SalvageOptions): Promise<SalvageReport> {
  const files = storeFiles(dir);
  if (!existsSync(dir)) throw new StoreError("INVALID_ARGUMENT", `${dir} does not exist`);
  const ownership = await Ownership.acquire(dir, disk);
  try {
    finishSalvage(disk, files);
    Evidence.restore(disk, files);
    if (!existsSync(files.database))
      throw new StoreError("INVALID_ARGUMENT", `${files.database} does not exist`);
    return await salvageOwned(disk, files);
  } catch (error) {
    throw StoreError.from(error);
  } finally {
    await ownership.release();
    clearAttempts(disk, files);
  }
}

async function salvageOwned(disk: Disk, files: StoreFiles): Promise<SalvageReport> {
  clearSalvage(disk, files);
  const { head, problems: headProblems } = readHead(files);
  const { plain, repaired } = attemptDirs(files);
  const readings = [
    await readAttempt(disk, files.database, plain, head, false),
    await readAttempt(disk, files.database, repaired, head, true),
  ].filter((reading) => reading !== undefined);
  const best = readings.sort((a, b) => a.inspection.problems.length - b.inspection.problems.length)[0];
  if (best === undefined)
    throw new StoreError("CORRUPT", "nothing of the database can be read: restore a backup");

  const { inspection } = best;
  const problems = [...headProblems, ...inspection.problems];
  const records = newest(inspection);
  const { meta } = inspection;
  const damaged = unusedName(`${files.database}.damaged`);
  if (problems.length === 0 && meta !== undefined) {
    disk.rename(best.dir, files.salvaged);
    replace(disk, files, damaged);
    return {
      problems,
      records: records.length,
      revision: lastRevision(inspection),
      epoch: meta.epoch,
      damaged,
    };
  }
  const id = meta?.id ?? head?.store;
  if (id === undefined) throw new StoreError("CORRUPT", "the id of this store is unknown: restore a backup");
  const revision = Math.max(lastRevision(inspection), head?.revision ?? 0) + RESTORE_REVISION_GAP;
  const epoch = (meta?.epoch ?? 1) + 1;
  const making = makingDir(files);
  const changed = { id, epoch, opens: meta?.opens ?? 0, lineage: randomUUID() };
  await writeDatabase(disk, making, changed, revision, records);
  disk.rename(making, files.salvaged);
  replace(disk, files, damaged);
  HeadFile.open(files.head, { store: id, revision, chain: CHAIN_START }, disk).close();
  return { problems, records: records.length, revision, epoch, damaged };
}

function readHead(files: StoreFiles): {
  readonly head: Head | undefined;
  readonly problems: readonly string[];
} {
  try {
    const head = HeadFile.read(files.head);
    return {
      head,
      problems: head === undefined ? ["the HEAD file is missing: the newest revisions may be lost"] : [],
    };
  } catch (error) {
    return { head: undefined, problems: [StoreError.from(error).message] };
  }
}

/**
 * Reads a copy of the store, with or without a repair by LevelDB. A repair can recover lost tables, but can also lose
 * records.
 */
async function readAttempt(
  disk: Disk,
  from: string,
  dir: string,
  head: Head | undefined,
  repair: boolean,
): Promise<{ readonly dir: string; readonly inspection: Inspection } | undefined> {
  if (!linkFiles(disk, from, dir)) copyFiles(disk, from, dir);
  let db: Database | undefined;
  try {
    if (repair) await disk.repairDatabase(dir);
    db = await disk.openDatabase(dir);
    return { dir, inspection: await inspect(db, head) };
  } catch {
    return undefined;
  } finally {
    await db?.close();
  }
}

/** Returns the newest intact version of each key, from records and log entries. */
function newest({ records, entries }: Inspection): Version[] {
  const latest = new Map(records.map((record) => [record.key, record]));
  for (const entry of entries) {
    for (const change of entry.changes) {
      if (change.value === undefined) latest.delete(change.key);
      else latest.set(change.key, change);
    }
  }
  return [...latest.values()];
}

function unusedName(name: string): string {
  let unused = name;
  for (let i = 2; existsSync(unused); i++) unused = `${name}-${i}`;
  return unused;
}

/** Replaces the damaged database with the new one. If this is interrupted, the next start finishes it. */
function replace(disk: Disk, { database, salvaged }: StoreFiles, damaged: string): void {
  disk.syncDirectory(dirname(database));
  disk.rename(database, damaged);
  disk.rename(salvaged, database);
  disk.syncDirectory(dirname(database));
}

function copyFiles(disk: Disk, from: string, to: string): void {
  removeTree(disk, to);
  disk.makeDirectory(to);
  for (const name of databaseFiles(from)) disk.copy(join(from, name), join(to, name));
}
