import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import type { Logger } from "pino";
import { type BackupInfo, type DurableStore, readBackup, StoreError } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import {
  backupName,
  backupsAmong,
  leftovers,
  RETRY_MS,
  START_DELAY_MS,
  surplusBackups,
  untilNextBackup,
} from "./plan-backups.ts";

/** The store stops writing below 64 MiB, and a backup must not bring it there. */
const KEEP_FREE_BYTES = 256 * 1024 * 1024;

export interface ScheduledBackupsOptions {
  readonly store: Pick<DurableStore, "backup">;
  readonly directory: string;
  readonly intervalMs: number;
  /** The number of backups that are kept. */
  readonly keep: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the free bytes of the directory's disk. Default: those of the file system. */
  readonly freeBytes?: (directory: string) => Promise<number>;
}

/** The state of the backups, for metrics. */
export interface BackupStats {
  /** The time of the newest backup that was verified; undefined: there is none. */
  readonly lastMs: number | undefined;
  readonly failures: number;
}

/**
 * Writes a backup of the store at each interval while the coordinator serves, reads it back, and removes the oldest ones. A backup
 * that can't be read back is removed, and the older ones stay.
 */
export class ScheduledBackups {
  readonly #options: ScheduledBackupsOptions;
  #cancel = (): void => {};
  #running: Promise<void> = Promise.resolve();
  #closed = false;
  #lastMs: number | undefined;
  #failures = 0;

  private constructor(options: ScheduledBackupsOptions, lastMs: number | undefined) {
    this.#options = options;
    this.#lastMs = lastMs;
    this.#schedule(Math.max(START_DELAY_MS, this.#dueInMs()));
  }

  /** Starts the schedule. A directory that can't be read is reported at the first backup. */
  static async start(options: ScheduledBackupsOptions): Promise<ScheduledBackups> {
    const names = await readdir(options.directory).catch(() => []);
    return new ScheduledBackups(options, backupsAmong(names).at(-1)?.madeMs);
  }

  stats(): BackupStats {
    return { lastMs: this.#lastMs, failures: this.#failures };
  }

  /** Ends the schedule, after the backup that is being written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
  }

  #dueInMs(): number {
    const { clock, intervalMs } = this.#options;
    return untilNextBackup({ nowMs: clock.nowMs(), lastMs: this.#lastMs, intervalMs });
  }

  #schedule(delayMs: number): void {
    if (this.#closed) return;
    this.#cancel = this.#options.clock.schedule(delayMs, () => {
      this.#running = this.#run();
    });
  }

  async #run(): Promise<void> {
    const { directory, log, clock, intervalMs } = this.#options;
    try {
      const startMs = clock.monotonicMs();
      const { file, info } = await this.#make();
      const tookMs = Math.round(clock.monotonicMs() - startMs);
      const { revision, records, sha256 } = info;
      log.info({ event: "backup-made", file, revision, records, sha256, tookMs }, "backup-made");
      this.#schedule(this.#dueInMs());
    } catch (err) {
      this.#failures += 1;
      log.error({ event: "backup-failed", directory, err }, "the store has no new backup");
      this.#schedule(Math.min(intervalMs, RETRY_MS));
    }
  }

  async #make(): Promise<{ readonly file: string; readonly info: BackupInfo }> {
    const { store, directory, keep, clock } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const names = await readdir(directory);
    for (const name of leftovers(names)) await rm(join(directory, name), { force: true });
    const before = backupsAmong(names);
    await this.#assertRoom(before.at(-1)?.name);
    const madeMs = clock.nowMs();
    const file = join(directory, backupName(madeMs));
    const written = await store.backup(file);
    await verifyBackup(file, written);
    this.#lastMs = madeMs;
    const after = backupsAmong([...names, backupName(madeMs)]);
    for (const { name } of surplusBackups(after, keep)) await rm(join(directory, name), { force: true });
    return { file, info: written };
  }

  /** Assumes that the store has not doubled since the newest backup. */
  async #assertRoom(newest: string | undefined): Promise<void> {
    const { directory, freeBytes = freeBytesOf } = this.#options;
    const lastBytes = newest === undefined ? 0 : (await stat(join(directory, newest))).size;
    const free = await freeBytes(directory);
    const needed = KEEP_FREE_BYTES + 2 * lastBytes;
    if (free >= needed) return;
    throw new StoreError(
      "IO_ERROR",
      `a backup needs ${mebibytes(needed)} MiB of free space in ${directory}, and ${mebibytes(free)} MiB are free: free some, or set backups.directory to another disk`,
    );
  }
}

/** Reads the backup again. Removes it and throws CORRUPT unless it holds what was written. */
async function verifyBackup(file: string, written: BackupInfo): Promise<void> {
  try {
    const { info } = await readBackup(file);
    if (info.sha256 !== written.sha256)
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
