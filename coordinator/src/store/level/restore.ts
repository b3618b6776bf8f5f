import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { type BackupInfo, readBackup } from "./backup.ts";
import { CHAIN_START } from "./entry-codec.ts";
import { storeFiles } from "./files.ts";
import { HeadFile } from "./head-file.ts";
import { Ownership } from "./ownership.ts";
import { writeDatabase } from "./write-database.ts";

/**
 * A restored store goes on far beyond any revision the lost one can have reached after the backup (etcd advises the
 * same number). So whoever resumes a watch from a lost revision gets COMPACTED, and does not mix two histories.
 */
export const RESTORE_REVISION_GAP = 1_000_000_000;

export interface RestoreOptions {
  /** Missing or empty; NOT_EMPTY otherwise. */
  readonly dir: string;
  readonly file: string;
  /**
   * The new epoch, later than any that was seen; by default the one after the backup's. A backup that is restored a
   * second time needs another one than the first time.
   */
  readonly epoch?: number;
}

export interface RestoreResult {
  readonly backup: BackupInfo;
  /** What the store goes on with. */
  readonly revision: Revision;
  readonly epoch: number;
}

/** Makes a store of a backup, once all of the backup was checked. The store keeps its id and enters a new epoch. */
export async function restoreLevelStore(options: RestoreOptions): Promise<RestoreResult> {
  const { dir, file } = options;
  const { info, records } = await readBackup(file);
  const { epoch = info.epoch + 1 } = options;
  if (!(Number.isSafeInteger(epoch) && epoch > info.epoch)) {
    throw new StoreError("INVALID_ARGUMENT", `the new epoch must be later than ${info.epoch}`);
  }
  const files = storeFiles(dir);
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    throw new StoreError("NOT_EMPTY", `${dir} is not empty: a backup is restored into an empty directory`);
  }
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const ownership = await Ownership.take(dir);
  try {
    const revision = info.revision + RESTORE_REVISION_GAP;
    await writeDatabase(
      files.database,
      { id: info.store, epoch, opens: 0, lineage: randomUUID() },
      revision,
      records,
    );
    HeadFile.open(files.head, { store: info.store, revision, chain: CHAIN_START }).close();
    return { backup: info, revision, epoch };
  } catch (error) {
    throw StoreError.from(error);
  } finally {
    await ownership.release();
  }
}
