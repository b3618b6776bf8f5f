import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { type BackupInfo, checkBackup, type DurableStore, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import {
  type BackupFile,
  type BackupSeries,
  backupName,
  backupsAmong,
  leftovers,
  surplusBackups,
} from "./plan-backups.ts";

/** The free space that a backup must leave. The store stops writing below 64 MiB. */
const KEEP_FREE_BYTES = 256 * 1024 * 1024;

export interface BackupDirectoryOptions {
  readonly store: Pick<DurableStore, "backup">;
  readonly path: string;
  /** The number of kept backups of each series. */
  readonly keep: number;
  readonly clock: Pick<Clock, "nowMs">;
  /** Returns the free bytes of the directory's disk. Default: queries the file system. */
  readonly freeBytes?: (directory: string) => Promise<number>;
}

/** A backup that was written and verified. */
export interface MadeBackup extends BackupFile {
  readonly sizeBytes: number;
  readonly info: BackupInfo;
}

export interface ListedBackup extends BackupFile {
  readonly sizeBytes: number;
}

/** The directory of the backups. Backups are made one after the other. */
export class BackupDirectory {
  readonly #options: BackupDirectoryOptions;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #newestMs: number | undefined;

  private constructor(options: BackupDirectoryOptions, newestMs: number | undefined) {
    this.#options = options;
    this.#newestMs = newestMs;
  }

  /** Opens the directory. If it can't be read, the first backup reports this. */
  static async open(options: BackupDirectoryOptions): Promise<BackupDirectory> {
    const names = await readdir(options.path).catch(() => []);
    return new BackupDirectory(options, backupsAmong(names).at(-1)?.madeMs);
  }

  get path(): string {
    return this.#options.path;
  }

  /** The time of the newest backup; undefined if there is none. */
  get newestMs(): number | undefined {
    return this.#newestMs;
  }

  /** Whether a backup is being made. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  /**
   * Writes and verifies a backup, and removes the oldest ones of its series. An invalid backup is
   * removed.
   */
  make(series: BackupSeries): Promise<MadeBackup> {
    this.#waiting += 1;
    const made = this.#last
      .then(() => this.#make(series))
      .finally(() => {
        this.#waiting -= 1;
      });
    this.#last = made.catch(() => {});
    return made;
  }

  /** Returns the backups, oldest first. */
  async list(): Promise<readonly ListedBackup[]> {
    const { path } = this.#options;
    const names = await readdir(path).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    const listed = await Promise.all(
      backupsAmong(names).map(async (backup) => {
        const size = await stat(join(path, backup.name)).then(
          ({ size }) => size,
          () => undefined,
        );
        // The backup was removed after the directory was read.
        return size === undefined ? [] : [{ ...backup, sizeBytes: size }];
      }),
    );
    return listed.flat();
  }

  /**
   * Opens a backup for reading; undefined if there is none with the name. The caller must close it.
   */
  async read(
    name: string,
  ): Promise<{ readonly backup: ListedBackup; readonly file: FileHandle } | undefined> {
    const [backup] = backupsAmong([name]);
    if (backup === undefined) return undefined;
    const file = await open(join(this.#options.path, name), "r").catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (file === undefined) return undefined;
    try {
      return { backup: { ...backup, sizeBytes: (await file.stat()).size }, file };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Resolves when no backup is being made. */
  async idle(): Promise<void> {
    await this.#last;
  }

  async #make(series: BackupSeries): Promise<MadeBackup> {
    const { store, path, keep, clock } = this.#options;
    await mkdir(path, { recursive: true, mode: 0o700 });
    const names = await readdir(path);
    for (const name of leftovers(names)) await rm(join(path, name), { force: true });
    await this.#assertRoom(backupsAmong(names).at(-1)?.name);
    const madeMs = clock.nowMs();
    const name = backupName(series, madeMs);
    const file = join(path, name);
    const info = await store.backup(file);
    await verifyBackup(file, info);
    this.#newestMs = madeMs;
    for (const surplus of surplusBackups(backupsAmong([...names, name]), keep))
      await rm(join(path, surplus.name), { force: true });
    return { name, series, madeMs, sizeBytes: (await stat(file)).size, info };
  }

  /** Throws if there is not enough free space, estimated as twice the size of the newest backup. */
  async #assertRoom(newest: string | undefined): Promise<void> {
    const { path, freeBytes = freeBytesOf } = this.#options;
    const lastBytes = newest === undefined ? 0 : (await stat(join(path, newest))).size;
    const free = await freeBytes(path);
    const needed = KEEP_FREE_BYTES + 2 * lastBytes;
    if (free >= needed) return;
    throw new StoreError(
      "NO_SPACE",
      `a backup needs ${mebibytes(needed)} MiB of free space in ${path}, and ${mebibytes(free)} MiB are free: free some, or set backups.directory to another disk`,
    );
  }
}

/** Verifies the written backup. If it is invalid, removes it and throws CORRUPT. */
async function verifyBackup(file: string, written: BackupInfo): Promise<void> {
  try {
    const { sha256 } = await checkBackup(file);
    if (sha256 !== written.sha256)
      throw new StoreError("CORRUPT", `the backup ${file} has another SHA-256 than was written`);
  } catch (error) {
    if (existsSync(file)) await rm(file, { force: true });
    throw new StoreError("CORRUPT", `the new backup is removed: ${messageOf(error)}`, { cause: error });
  }
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

function mebibytes(bytes: number): number {
  return Math.floor(bytes / 1024 / 1024);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
