import type { BackupRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toEpochMs } from "../../model/timestamp.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Clock } from "../../time/clock.ts";
import { backupKey } from "../keys.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { OrphanAges } from "./orphan-ages.ts";

const DAY_MS = 86_400_000;

/**
 * Returns the backup records of workspaces whose newest backup is older than the limit in days, 0 for
 * no limit. Backups of a workspace that has an instance never expire.
 */
export function expiredBackups(
  backups: readonly RecordEntry<BackupRecord>[],
  hasInstance: (key: string) => boolean,
  maxAgeDays: number,
  nowMs: number,
): RecordEntry<BackupRecord>[] {
  if (maxAgeDays === 0) return [];
  return backups.filter(({ key, record }) => {
    const times = record.generations.map(({ at }) => toEpochMs(at) ?? 0);
    return Math.max(0, ...times) + maxAgeDays * DAY_MS < nowMs && !hasInstance(key);
  });
}

export interface BackupRetentionOptions {
  readonly view: Pick<WorkspaceView, "instances" | "backups">;
  readonly writer: Pick<WorkspaceWriter, "transact">;
  readonly maxAgeDays: number;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** The time for which backups must have been expired before they are removed. */
  readonly graceMs: number;
}

/**
 * Removes the records of expired backups; the sweep deletes their archives after its own grace
 * period. A record is removed once it has been expired for the grace period by the monotonic clock,
 * so that a temporary jump of the wall clock removes none.
 */
export class BackupRetention {
  readonly #options: BackupRetentionOptions;
  readonly #ages: OrphanAges;

  constructor(options: BackupRetentionOptions) {
    this.#options = options;
    this.#ages = new OrphanAges(options.clock.monotonicMs);
  }

  async removeExpired(): Promise<void> {
    const { view, writer, maxAgeDays, clock, graceMs } = this.#options;
    const used = new Set(
      view.instances().map(({ record: { metadata } }) => {
        const { owner = "", metaId = "" } = metadata ?? {};
        return backupKey({ owner, metaId });
      }),
    );
    const expired = expiredBackups(view.backups(), (key) => used.has(key), maxAgeDays, clock.nowMs());
    const ages = this.#ages.begin();
    for (const { key, revision } of expired)
      if (ages.isDue(key, graceMs))
        await writer.transact([{ type: "mod-revision", key, revision }], [{ type: "delete", key }]);
    ages.finish();
  }
}
