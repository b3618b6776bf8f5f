import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename } from "node:path";
import { readBackup } from "../format/backup.ts";
import { CHAIN_START } from "../format/entry-codec.ts";
import { checkedEpoch, RESTORE_REVISION_GAP, type RestoreResult } from "../format/restored.ts";
import { StoreError } from "../store-error.ts";
import { type Disk, emptyDirectory, SYSTEM_DISK } from "./disk.ts";
import { type StoreFiles, storeFiles } from "./files.ts";
import { HeadFile } from "./head-file.ts";
import { Ownership } from "./ownership.ts";
import { writeDatabase } from "./write-database.ts";

export interface RestoreOptions {
  /** Missing or empty; NOT_EMPTY otherwise. */
  readonly dir: string;
  readonly file: string;
  /**
   * The new epoch, later than any that was seen; by default the one after the backup's. A backup that is restored a
   * second time needs another one than the first time.
   */
  readonly epoch?: number;
  /** The system's by default. */
  readonly disk?: Disk;
}

/**
 * Makes a store of a backup, once all of the backup was checked. The store keeps its id and enters a new epoch. A
 * restore that was cut off leaves a directory that does not open, and that another restore accepts.
 */
export async function restoreLevelStore(options: RestoreOptions): Promise<RestoreResult> {
  const { dir, file, disk = SYSTEM_DISK } = options;
  const { info, records } = await readBackup(file);
  const epoch = checkedEpoch(info, options.epoch);
  const files = storeFiles(dir);
  checkEmpty(files);
  disk.makeDirectory(dir);
  const ownership = await Ownership.take(dir, disk);
  try {
    const revision = info.revision + RESTORE_REVISION_GAP;
    const meta = { id: info.store, epoch, opens: 0, lineage: randomUUID() };
    // First and until the end: its name says that the directory holds an unfinished restore.
    disk.makeDirectory(files.restoring);
    emptyDirectory(disk, files.restoring);
    disk.syncDirectory(dir);
    await writeDatabase(disk, files.restoring, meta, revision, records);
    HeadFile.open(files.head, { store: info.store, revision, chain: CHAIN_START }, disk).close();
    disk.rename(files.restoring, files.database);
    disk.syncDirectory(dir);
    return { backup: info, revision, epoch };
  } catch (error) {
    throw StoreError.from(error);
  } finally {
    await ownership.release();
  }
}

/** Refuses to open what a restore has not finished. */
export function checkRestored({ dir, database, restoring }: StoreFiles): void {
  if (existsSync(database) || !existsSync(restoring)) return;
  throw new StoreError(
    "CORRUPT",
    `the restore into ${dir} was cut off before its end: restore the backup into ${dir} again`,
  );
}

function checkEmpty({ dir, restoring, head }: StoreFiles): void {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  const unfinished = existsSync(restoring)
    ? [restoring, head, `${head}.new`].map((path) => basename(path))
    : [];
  if (names.every((name) => unfinished.includes(name))) return;
  throw new StoreError("NOT_EMPTY", `${dir} is not empty: a backup is restored into an empty directory`);
}
