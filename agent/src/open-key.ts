import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { Clock } from "./clock.ts";
import type { NoteDamage } from "./damage-reports.ts";
import { DISK_RESERVE_BYTES, DiskReserve } from "./disk-reserve.ts";
import { type JournalKey, loadJournalKey } from "./journal/journal-key.ts";

export interface OpenKeyOptions {
  readonly dataDir: string;
  /** The path of the operator's own key for the journal. The file may be missing. */
  readonly keyFile?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly noteDamage: NoteDamage;
  /** The size of the disk space reserved for the agent's own start, in bytes. */
  readonly reserveBytes?: number;
}

export interface OpenedKey {
  readonly reserve: DiskReserve;
  /** The only key object of this process: a second one would differ while the key can't be written. */
  readonly journalKey: JournalKey;
}

/** Makes room on a full disk and loads the host's key. Call it before anything is written. */
export async function openKey(options: OpenKeyOptions): Promise<OpenedKey> {
  const { dataDir: dir, keyFile: file, clock, log, noteDamage, reserveBytes = DISK_RESERVE_BYTES } = options;
  const reserve = new DiskReserve({
    ...{ path: join(dir, "disk-reserve"), clock, bytes: reserveBytes },
    onEvent: (event, fields) => log.warn({ event, ...fields }),
  });
  await reserve.makeRoom();
  return { reserve, journalKey: await loadJournalKey({ dir, file, noteDamage }) };
}
