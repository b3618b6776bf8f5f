import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { BackupInfo } from "./backup.ts";

/**
 * The number of revisions that a restore skips, far more than the lost store can have written after the backup (etcd
 * advises the same number). A watch that resumes from a lost revision then fails with COMPACTED, instead of mixing two
 * histories.
 */
export const RESTORE_REVISION_GAP = 1_000_000_000;

export interface RestoreResult {
  readonly backup: BackupInfo;
  /** The revision after which the store continues. */
  readonly revision: Revision;
  readonly epoch: number;
}

/**
 * Returns the new epoch of a restored store: the given one, or the one after the backup's. @throws StoreError
 * INVALID_ARGUMENT if it is not later than the backup's.
 */
export function checkedEpoch(info: BackupInfo, epoch = info.epoch + 1): number {
  if (Number.isSafeInteger(epoch) && epoch > info.epoch) return epoch;
  throw new StoreError("INVALID_ARGUMENT", `the new epoch must be later than ${info.epoch}`);
}
