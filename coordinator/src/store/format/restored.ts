import type { Revision } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { BackupInfo } from "./backup.ts";

/**
 * A restored store goes on far beyond any revision the lost one can have reached after the backup (etcd advises the
 * same number). So whoever resumes a watch from a lost revision gets COMPACTED, and does not mix two histories.
 */
export const RESTORE_REVISION_GAP = 1_000_000_000;

export interface RestoreResult {
  readonly backup: BackupInfo;
  /** The revision that the store continues with. */
  readonly revision: Revision;
  readonly epoch: number;
}

/**
 * Returns the epoch that a store of the backup enters: the given one, or the one after the backup's.
 * @throws StoreError INVALID_ARGUMENT unless it is later than the backup's.
 */
export function checkedEpoch(info: BackupInfo, epoch = info.epoch + 1): number {
  if (Number.isSafeInteger(epoch) && epoch > info.epoch) return epoch;
  throw new StoreError("INVALID_ARGUMENT", `the new epoch must be later than ${info.epoch}`);
}
