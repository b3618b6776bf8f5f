import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { Config } from "../config.ts";
import type { DurableStore } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { BackupDirectory } from "./backup-directory.ts";
import { ScheduledBackups } from "./scheduled-backups.ts";

/** The backups of a running coordinator. */
export interface Backups {
  readonly directory: BackupDirectory;
  stats(): BackupStats;
  /** Ends the schedule. Resolves when no backup is being written. */
  close(): Promise<void>;
}

/** The state of the backups, for metrics. */
export interface BackupStats {
  /** The time of the newest verified backup; undefined if there is none. */
  readonly lastMs: number | undefined;
  /** The number of scheduled backups that failed. */
  readonly failures: number;
}

const HOUR_MS = 3_600_000;

/** Opens the directory of backups, and starts the schedule if it is enabled. */
export async function openBackups(
  { backups, dataDir }: Pick<Config, "backups" | "dataDir">,
  dependencies: { readonly store: DurableStore; readonly clock: Clock; readonly log: Log },
): Promise<Backups> {
  const { clock, log } = dependencies;
  const { enabled, intervalHours, keep, directory: path = join(dataDir, "backups") } = backups;
  const directory = await BackupDirectory.open({ ...dependencies, path, keep });
  const schedule = enabled
    ? await ScheduledBackups.start({ directory, intervalMs: intervalHours * HOUR_MS, clock, log })
    : undefined;
  return {
    directory,
    stats: () => ({ lastMs: directory.newestMs, failures: schedule?.failures ?? 0 }),
    close: async () => {
      await schedule?.close();
      await directory.idle();
    },
  };
}
