import { StopWorkspacePolicy, WorkspacePhase } from "@forage/proto/core";
import { type InstanceRecord, TransferRecord } from "@forage/proto/forage/workspaces/v1/records";
import { TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { advance } from "./advance.ts";
import {
  FINAL_TRANSFER,
  finalKindOf,
  finalTransferOf,
  hasPod,
  isDisposed,
  isKept,
  needsSaving,
} from "./content.ts";
import { type Observation, presentTime } from "./observation.ts";

/**
 * One step of a plan. All steps of a plan are made in one transaction, except `confirm-transfer`,
 * which first queries the content store.
 */
export type WorkspaceStep =
  | { readonly type: "create-pod" }
  | { readonly type: "stop-pod"; readonly pod: PodEntry; readonly graceSeconds: number }
  | { readonly type: "forget-pod"; readonly pod: PodEntry }
  | { readonly type: "confirm-transfer"; readonly transfer: TransferRecord }
  | { readonly type: "release-meta-id" }
  | { readonly type: "delete-instance" };

export interface WorkspacePlan {
  /** The record to store, or the given object if nothing in it changes. */
  readonly record: InstanceRecord;
  readonly steps: readonly WorkspaceStep[];
}

/**
 * The default of Kubernetes, and the grace period of both of Gitpod's managers after a normal stop.
 */
export const NORMAL_GRACE_SECONDS = 30;
const IMMEDIATE_GRACE_SECONDS = 1;

/** Computes the record to store and the steps to take for one instance. */
export function planWorkspace(
  before: InstanceRecord,
  observation: Observation,
  nameOf: (record: InstanceRecord, id: string) => string,
): WorkspacePlan {
  const record = withFinalTransfer(keptAgain(advance(before, observation)), observation, nameOf);
  return { record, steps: stepsOf(before, record, observation) };
}

/**
 * Keeps the content of a stopped instance whose final transfer has failed permanently. A retry that
 * the operator ordered after the stop can fail as well.
 */
function keptAgain(record: InstanceRecord): InstanceRecord {
  const isFailed = finalTransferOf(record)?.state === TransferState.FAILED;
  const isUnsaved = record.phase === WorkspacePhase.STOPPED && !record.contentKept && !record.contentSafe;
  return isUnsaved && isFailed ? { ...record, contentKept: true } : record;
}

function withFinalTransfer(
  record: InstanceRecord,
  { nowMs }: Observation,
  nameOf: (record: InstanceRecord, id: string) => string,
): InstanceRecord {
  const kind = finalKindOf(record.type);
  if (record.stop === undefined || hasPod(record) || !needsSaving(record) || kind === undefined)
    return record;
  if (record.contentSafe || finalTransferOf(record) !== undefined) return record;
  return withTransfer(record, kind, { prefix: FINAL_TRANSFER, nowMs, nameOf });
}

/** Returns the record with one more transfer ordered. */
export function withTransfer(
  record: InstanceRecord,
  kind: TransferRecord["kind"],
  {
    prefix,
    nowMs,
    nameOf,
  }: {
    readonly prefix: string;
    readonly nowMs: number;
    readonly nameOf: (record: InstanceRecord, id: string) => string;
  },
): InstanceRecord {
  const transferCount = record.transferCount + 1;
  const id = `${prefix}-${transferCount}`;
  const transfer = TransferRecord.fromPartial({
    id,
    kind,
    object: nameOf(record, id),
    orderedAt: toTimestamp(nowMs),
  });
  return { ...record, transferCount, transfers: [...record.transfers, transfer] };
}

function stepsOf(before: InstanceRecord, record: InstanceRecord, observation: Observation): WorkspaceStep[] {
  const steps: WorkspaceStep[] = [...podSteps(record, observation)];
  const done = record.transfers.find(
    ({ state, finishedAt, kind }) =>
      state === TransferState.DONE && finishedAt === undefined && kind !== TransferKind.EXPORT,
  );
  if (done !== undefined) steps.push({ type: "confirm-transfer", transfer: done });
  if (record.phase !== WorkspacePhase.STOPPED) return steps;
  if (before.phase !== WorkspacePhase.STOPPED) steps.push({ type: "release-meta-id" });
  else if (isOver(record, observation)) steps.push({ type: "delete-instance" });
  return steps;
}

function podSteps(record: InstanceRecord, { pod }: Observation): WorkspaceStep[] {
  if (!record.podCreated) return record.stop === undefined ? [{ type: "create-pod" }] : [];
  if (record.stop === undefined || pod === undefined || pod.record.uid !== record.podUid) return [];
  if (pod.record.node === "") return [{ type: "forget-pod", pod }];
  if (pod.record.stoppingSince !== undefined) return [];
  const isHasty = record.stop.policy === StopWorkspacePolicy.IMMEDIATELY;
  return [{ type: "stop-pod", pod, graceSeconds: isHasty ? IMMEDIATE_GRACE_SECONDS : NORMAL_GRACE_SECONDS }];
}

/**
 * Reports whether the record can be deleted. It stays until the node has deleted the content,
 * because the order to do so is derived from it.
 */
function isOver(record: InstanceRecord, observation: Observation): boolean {
  const { nowMs, settings } = observation;
  const stoppedMs = presentTime(toEpochMs(record.stoppedAt) ?? nowMs, observation);
  return (
    isDisposed(record) && !isKept(record) && nowMs >= stoppedMs + settings.stoppedRetentionSeconds * 1000
  );
}
