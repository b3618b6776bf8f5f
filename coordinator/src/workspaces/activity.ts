import { WorkspacePhase } from "@forage/proto/core";
import { ActivityRecord } from "@forage/proto/forage/workspaces/v1/records";
import { encodeRecord } from "../model/codec.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import { activityKey } from "./keys.ts";
import { conditionsOf, withConditions } from "./phase/conditions.ts";
import type { WorkspaceView } from "./view.ts";
import { noSuchWorkspace, type WorkspaceWriter } from "./writer.ts";

export interface ActivityOptions {
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly nowMs: () => number;
}

/** The least time between two writes for one workspace. Clients send a heartbeat every 30 s. */
const MIN_INTERVAL_MS = 1_000;

/** Stores when workspaces were last used. */
export class ActivityWriter {
  readonly #options: ActivityOptions;

  constructor(options: ActivityOptions) {
    this.#options = options;
  }

  /**
   * Marks the workspace as used now. `closed` means that its user has left it. Throws NOT_FOUND.
   */
  async mark(id: string, closed: boolean): Promise<void> {
    const { view, writer, nowMs } = this.#options;
    const entry = view.instance(id);
    if (entry === undefined) throw noSuchWorkspace(id);
    if (entry.record.phase === WorkspacePhase.STOPPED) return;
    const now = nowMs();
    const before = view.activity(id)?.record;
    const lastMs = toEpochMs(before?.lastActivity);
    const isFresh = lastMs !== undefined && now - lastMs < MIN_INTERVAL_MS && lastMs <= now;
    if (isFresh && before?.closed === closed) return;
    const record = ActivityRecord.fromPartial({
      lastActivity: toTimestamp(now),
      firstUserActivity: before?.firstUserActivity ?? toTimestamp(now),
      closed,
    });
    const key = activityKey(id);
    // The condition keeps an activity record from outliving its instance.
    await writer.transact(
      [{ type: "exists", key: entry.key }],
      [{ type: "put", key, value: encodeRecord(ActivityRecord, record) }],
    );
    if (conditionsOf(entry.record).firstUserActivity !== undefined) return;
    await writer.update(id, (it) =>
      conditionsOf(it).firstUserActivity === undefined
        ? withConditions(it, { firstUserActivity: toTimestamp(now) })
        : it,
    );
  }
}
