import type { Log } from "@forage/common/log";
import type { Clock } from "../time/clock.ts";
import type { BackupDirectory } from "./backup-directory.ts";
import { RETRY_MS, START_DELAY_MS, untilNextBackup } from "./plan-backups.ts";

export interface ScheduledBackupsOptions {
  readonly directory: Pick<BackupDirectory, "path" | "make" | "list">;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Makes a backup of the store at each interval while the coordinator serves. On-demand backups do
 * not change the schedule.
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

  /** Starts the schedule. If the directory can't be read, the first backup reports this. */
  static async start(options: ScheduledBackupsOptions): Promise<ScheduledBackups> {
    const backups = await options.directory.list().catch(() => []);
    const last = backups.findLast(({ series }) => series === "scheduled");
    return new ScheduledBackups(options, last?.madeMs);
  }

  /** The number of scheduled backups that failed. */
  get failures(): number {
    return this.#failures;
  }

  /** Ends the schedule after the backup in progress. */
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
      const { name, madeMs, info } = await directory.make("scheduled");
      this.#lastMs = madeMs;
      const tookMs = Math.round(clock.monotonicMs() - startMs);
      const { revision, records, sha256 } = info;
      log.info({ event: "backup-made", name, revision, records, sha256, tookMs });
      this.#schedule(this.#dueInMs());
    } catch (err) {
      this.#failures += 1;
      log.error({ event: "backup-failed", directory: directory.path, err });
      this.#schedule(Math.min(intervalMs, RETRY_MS));
    }
  }
}
