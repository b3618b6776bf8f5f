import { WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import type { ActivityRecord, InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toEpochMs } from "../../../src/model/timestamp.ts";
import { broken } from "./life-rules.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export interface LimitFacts {
  readonly nowMs: number;
  readonly upSinceMs: number;
  readonly activity: ActivityRecord | undefined;
  /** The time-out set by the request or by SetTimeout. */
  readonly customMs: number | undefined;
}

/** Checks a decision about the record against the documented limits. */
export function checkLimits(before: InstanceRecord, after: InstanceRecord, facts: LimitFacts): void {
  const overdue = isOverdue(before, facts);
  if (overdue && after.stop === undefined) broken("a limit has passed, and the workspace goes on");
  const isNew = before.stop === undefined && after.stop?.cause === "time-out";
  if (isNew && !overdue) broken(`it timed out before its time: ${after.conditions?.timeout}`);
  if (isNew && after.conditions?.timeout === "") broken("it timed out without the condition");
  const late = isStoppingOverdue(before, facts.nowMs);
  if (late && isBusy(before) && isBusy(after) && after.conditions?.failed === "")
    broken("a stop takes too long without a failure");
  const isEarly = !late && before.conditions?.failed === "" && /in time/.test(after.conditions?.failed ?? "");
  if (isEarly) broken("a stop failed before its time");
}

/** Reports whether a pod still runs, or the content of a regular workspace must still be saved. */
function isBusy(record: InstanceRecord): boolean {
  if (record.podCreated && !record.podGone) return true;
  const { contentEverReady, contentSafe, contentKept, contentLost, nodeLost, type } = record;
  const isUnsaved = contentEverReady && !contentSafe && !contentKept && !contentLost && !nodeLost;
  return isUnsaved && type === WorkspaceType.REGULAR;
}

/**
 * Reports whether a workspace must stop by the limits in docs/workspaces.md, with the default
 * settings.
 */
function isOverdue(record: InstanceRecord, { nowMs, upSinceMs, activity, customMs }: LimitFacts): boolean {
  if (record.stop !== undefined) return false;
  const age = nowMs - (toEpochMs(record.createdAt) ?? 0);
  if (age >= 36 * HOUR_MS) return true;
  // A start needs the coordinator, so time without it does not count.
  const startAge = Math.min(age, nowMs - upSinceMs);
  if (record.phase === WorkspacePhase.PENDING) return startAge >= 30 * MINUTE_MS;
  const interruptedMs = toEpochMs(record.interruptedSince);
  const isInterrupted = record.phase === WorkspacePhase.INTERRUPTED;
  if (isInterrupted && nowMs - Math.max(interruptedMs ?? 0, upSinceMs) >= 5 * MINUTE_MS) return true;
  if (record.phase !== WorkspacePhase.RUNNING && !isInterrupted) return startAge >= HOUR_MS;
  if (record.type !== WorkspaceType.REGULAR) return age >= (customMs ?? HOUR_MS);
  // Users have three heartbeats to reconnect after a start of the coordinator.
  if (nowMs < upSinceMs + 90 * SECOND_MS) return false;
  const lastMs = toEpochMs(activity?.lastActivity);
  if (activity === undefined || lastMs === undefined) return age >= Math.max(HOUR_MS, customMs ?? 0);
  if (activity.closed && !record.closedTimeoutOff && nowMs - lastMs >= 2 * MINUTE_MS) return true;
  return nowMs - lastMs >= (customMs ?? 30 * MINUTE_MS);
}

/** Reports whether a stop has taken so long that it must be reported as a failure. */
function isStoppingOverdue(record: InstanceRecord, nowMs: number): boolean {
  const sinceMs = toEpochMs(record.stoppingSince);
  return record.phase === WorkspacePhase.STOPPING && sinceMs !== undefined && nowMs - sinceMs >= HOUR_MS;
}
