/** The reason why a backup was made. Each series has its own limit of kept backups. */
export type BackupSeries = "scheduled" | "on-demand";

/** A backup, as described by the name of its file. */
export interface BackupFile {
  readonly name: string;
  readonly series: BackupSeries;
  /** The time at which the backup was made. */
  readonly madeMs: number;
}

/**
 * The delay of the first backup after a start, because the start itself causes load, and a restored
 * store has a backup.
 */
export const START_DELAY_MS = 5 * 60_000;
/** The delay after which a failed backup is retried, unless the interval is shorter. */
export const RETRY_MS = 15 * 60_000;

const PREFIXES: Readonly<Record<BackupSeries, string>> = { scheduled: "store", "on-demand": "demand" };
const NAME = /^(store|demand)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})?Z\.backup$/;
const PARTIAL = ".partial";

/** Returns the name of a backup that is made at this time. Names of one series sort by time. */
export function backupName(series: BackupSeries, nowMs: number): string {
  const text = new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "");
  // Users may make several within one second.
  const time = series === "on-demand" ? text : text.replace(/\d{3}Z$/, "Z");
  return `${PREFIXES[series]}-${time}.backup`;
}

/** Returns the backups among the file names of a directory, oldest first. */
export function backupsAmong(names: readonly string[]): readonly BackupFile[] {
  return names
    .flatMap((name) => {
      const [, prefix, ...parts] = NAME.exec(name) ?? [];
      if (prefix === undefined) return [];
      const numbers = parts.map((part) => Number(part ?? 0));
      const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millisecond = 0] = numbers;
      const madeMs = Date.UTC(year, month - 1, day, hour, minute, second, millisecond);
      const series: BackupSeries = prefix === PREFIXES.scheduled ? "scheduled" : "on-demand";
      return [{ name, series, madeMs }];
    })
    .sort((a, b) => a.madeMs - b.madeMs);
}

/** Returns the names of files that interrupted backups left. */
export function leftovers(names: readonly string[]): readonly string[] {
  return names.filter((name) => name.endsWith(PARTIAL) && NAME.test(name.slice(0, -PARTIAL.length)));
}

/** Returns the backups to remove, so that the newest `keep` of each series remain. */
export function surplusBackups(backups: readonly BackupFile[], keep: number): readonly BackupFile[] {
  const ofSeries = (series: BackupSeries) => backups.filter((backup) => backup.series === series);
  return [ofSeries("scheduled"), ofSeries("on-demand")].flatMap((files) =>
    files.slice(0, Math.max(0, files.length - keep)),
  );
}

/** Returns the milliseconds until the next backup is due. */
export function untilNextBackup(options: {
  readonly nowMs: number;
  /** The time of the newest backup; undefined if there is none. */
  readonly lastMs: number | undefined;
  readonly intervalMs: number;
}): number {
  const { nowMs, lastMs, intervalMs } = options;
  if (lastMs === undefined) return 0;
  // A backup from the future was made with a wrong clock, so the schedule restarts.
  const ageMs = lastMs > nowMs ? 0 : nowMs - lastMs;
  return Math.max(0, intervalMs - ageMs);
}
