/** A backup by its file's name. */
export interface BackupFile {
  readonly name: string;
  /** The time at which it was made. */
  readonly madeMs: number;
}

/** The coordinator's start is a busy time, and a store that was just restored has a backup. */
export const START_DELAY_MS = 5 * 60_000;
/** A failed backup is tried again after this time, or after the interval if that is shorter. */
export const RETRY_MS = 15 * 60_000;

const NAME = /^store-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;
const PARTIAL = ".partial";

/** Returns the name of the backup that is made at this time. Names sort by time. */
export function backupName(nowMs: number): string {
  const text = new Date(nowMs).toISOString().replace(/\.\d+/, "").replaceAll(/[-:]/g, "");
  return `store-${text}.backup`;
}

/** Returns the backups among the names of a directory's files, oldest first. */
export function backupsAmong(names: readonly string[]): readonly BackupFile[] {
  return names
    .flatMap((name) => {
      const [, ...parts] = NAME.exec(name) ?? [];
      const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
      if (parts.length === 0) return [];
      return [{ name, madeMs: Date.UTC(year, month - 1, day, hour, minute, second) }];
    })
    .sort((a, b) => a.madeMs - b.madeMs);
}

/** Returns the names of files that a backup which was cut off has left. */
export function leftovers(names: readonly string[]): readonly string[] {
  return names.filter((name) => name.endsWith(PARTIAL) && NAME.test(name.slice(0, -PARTIAL.length)));
}

/** Returns the backups to remove, so that the newest `keep` are left. */
export function surplusBackups(backups: readonly BackupFile[], keep: number): readonly BackupFile[] {
  return backups.slice(0, Math.max(0, backups.length - keep));
}

/** Returns the time until the next backup is due. */
export function untilNextBackup(options: {
  readonly nowMs: number;
  /** The time of the newest backup; undefined: there is none. */
  readonly lastMs: number | undefined;
  readonly intervalMs: number;
}): number {
  const { nowMs, lastMs, intervalMs } = options;
  if (lastMs === undefined) return 0;
  // A backup of the future was made by a clock that was wrong: the schedule begins again.
  const ageMs = lastMs > nowMs ? 0 : nowMs - lastMs;
  return Math.max(0, intervalMs - ageMs);
}
