import type { SnapshotRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toEpochMs } from "../../model/timestamp.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Clock } from "../../time/clock.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { OrphanAges } from "./orphan-ages.ts";

export interface SnapshotLimits {
  /** The most snapshots kept for each workspace. */
  readonly perWorkspace: number;
  /** The age in days up to which a snapshot is kept; 0 means without a limit. */
  readonly maxAgeDays: number;
}

const DAY_MS = 86_400_000;

/**
 * Returns the expired snapshots, newest first: those older than the limit, and those beyond the
 * limit of their workspace. A snapshot that something refers to never expires.
 */
export function expiredSnapshots(
  snapshots: readonly RecordEntry<SnapshotRecord>[],
  isReferred: (object: string) => boolean,
  { perWorkspace, maxAgeDays }: SnapshotLimits,
  nowMs: number,
): RecordEntry<SnapshotRecord>[] {
  const newestFirst = [...snapshots].sort((a, b) => timeOf(b) - timeOf(a));
  const counts = new Map<string, number>();
  return newestFirst.filter((entry) => {
    const object = entry.record.archive?.object ?? "";
    const workspace = object.split("/").slice(0, 2).join("/");
    const count = (counts.get(workspace) ?? 0) + 1;
    counts.set(workspace, count);
    const isOld = maxAgeDays > 0 && timeOf(entry) + maxAgeDays * DAY_MS < nowMs;
    return (isOld || count > perWorkspace) && !isReferred(object);
  });
}

export interface SnapshotRetentionOptions {
  readonly view: Pick<WorkspaceView, "instances" | "snapshots">;
  readonly writer: Pick<WorkspaceWriter, "transact">;
  readonly limits: SnapshotLimits;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** The time for which a snapshot must have been expired before it is removed. */
  readonly graceMs: number;
}

/**
 * Removes the records of expired snapshots; the sweep deletes their archives after its own grace
 * period. A snapshot is removed once it has been expired for the grace period by the monotonic
 * clock, so that a temporary jump of the wall clock removes none.
 */
export class SnapshotRetention {
  readonly #options: SnapshotRetentionOptions;
  readonly #ages: OrphanAges;

  constructor(options: SnapshotRetentionOptions) {
    this.#options = options;
    this.#ages = new OrphanAges(options.clock.monotonicMs);
  }

  async removeExpired(): Promise<void> {
    const { view, writer, limits, clock, graceMs } = this.#options;
    const referred = new Set(
      view
        .instances()
        .flatMap(({ record: { archives, restore } }) => [
          ...Object.values(archives).map(({ object }) => object),
          restore?.object ?? "",
        ]),
    );
    const expiredBy = (of: SnapshotLimits): RecordEntry<SnapshotRecord>[] =>
      expiredSnapshots(view.snapshots(), (object) => referred.has(object), of, clock.nowMs());
    const surplus = new Set(expiredBy({ ...limits, maxAgeDays: 0 }).map(({ key }) => key));
    const ages = this.#ages.begin();
    for (const { key, revision } of expiredBy(limits)) {
      if (!surplus.has(key) && !ages.isDue(key, graceMs)) continue;
      await writer.transact([{ type: "mod-revision", key, revision }], [{ type: "delete", key }]);
    }
    ages.finish();
  }
}

function timeOf({ record }: RecordEntry<SnapshotRecord>): number {
  return toEpochMs(record.at) ?? 0;
}
