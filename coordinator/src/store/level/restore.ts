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
  /** The directory to restore into. It must be missing or empty. */
  readonly dir: string;
  readonly file: string;
  /**
   * The new epoch, which must be later than any earlier one. Default: the one after the backup's. A backup that is restored
   * a second time needs a later epoch than the first time.
   */
  readonly epoch?: number;
  /** The disk. Default: the file system. */
  readonly disk?: Disk;
}

/**
 * Creates a store from a backup, after the whole backup was checked. The store keeps its id and gets a new epoch. An
 * interrupted restore leaves a directory that can't be opened, and that another restore accepts.
 */
export async function restoreLevelStore(options: RestoreOptions): Promise<RestoreResult> {
  const { dir, file, disk = SYSTEM_DISK } = options;
  const { info, records } = await readBackup(file);
  const epoch = checkedEpoch(info, options.epoch);
  const files = storeFiles(dir);
  checkEmpty(files);
  disk.makeDirectory(dir);
  const ownership = await Ownership.acquire(dir, disk);
  try {
    const revision = info.revision + RESTORE_REVISION_GAP;
    const meta = { id: info.store, epoch, opens: 0, lineage: randomUUID() };
    // Exists from the first to the last step, and marks the directory as an unfinished restore.
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

/** Throws CORRUPT if a restore into the directory was interrupted. */
export function checkRestored({ dir, database, restoring }: StoreFiles): void {
  if (existsSync(database) || !existsSync(restoring)) return;
  throw new StoreError(
    "CORRUPT",
    `the restore into ${dir} was interrupted: restore the backup into ${dir} again`,
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
