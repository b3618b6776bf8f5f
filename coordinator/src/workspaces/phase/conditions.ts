import { WorkspaceConditionBool, WorkspaceConditions } from "@forage/proto/core";
import type { InstanceRecord, StopRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toTimestamp } from "../../model/timestamp.ts";

/** The length limit of reasons, which are stored with each status and shown to users. */
const MAX_REASON_LENGTH = 2_000;

export function conditionsOf(record: InstanceRecord): WorkspaceConditions {
  return record.conditions ?? WorkspaceConditions.fromPartial({});
}

/** Returns the record with changed conditions, or the same object if nothing changes. */
export function withConditions(record: InstanceRecord, change: Partial<WorkspaceConditions>): InstanceRecord {
  const before = conditionsOf(record);
  const after = { ...before, ...change };
  const same = Object.keys(change).every((key) => Reflect.get(before, key) === Reflect.get(after, key));
  return same && record.conditions !== undefined ? record : { ...record, conditions: after };
}

export function bool(value: boolean): WorkspaceConditionBool {
  return value ? WorkspaceConditionBool.TRUE : WorkspaceConditionBool.FALSE;
}

/** Sets the reason of a failure, unless the record already has one. */
export function failed(record: InstanceRecord, reason: string): InstanceRecord {
  if (conditionsOf(record).failed !== "") return record;
  return withConditions(record, { failed: reason.slice(0, MAX_REASON_LENGTH) });
}

/** Orders the stop, unless it was already ordered. */
export function stopped(record: InstanceRecord, cause: StopRecord["cause"], nowMs: number): InstanceRecord {
  if (record.stop !== undefined) return record;
  return { ...record, stop: { cause, policy: 0, at: toTimestamp(nowMs) } };
}
