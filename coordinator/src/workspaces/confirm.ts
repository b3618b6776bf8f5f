import { WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import {
  BackupRecord,
  Generation,
  type InstanceRecord,
  SnapshotRecord,
  type TransferRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import { TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { encodeRecord } from "../model/codec.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { RecordEntry } from "../state/record-view.ts";
import type { StoredObject } from "./content/content-store.ts";
import { snapshotUrl } from "./content/object-name.ts";
import { backupKey, snapshotKey } from "./keys.ts";
import { withConditions } from "./phase/conditions.ts";
import { FINAL_TRANSFER } from "./phase/content.ts";
import { isHeadless } from "./phase/status.ts";
import type { ExtraWrites } from "./writer.ts";

export interface Confirmation {
  readonly record: InstanceRecord;
  readonly writes: ExtraWrites;
}

export interface ConfirmInput {
  readonly record: InstanceRecord;
  readonly transfer: TransferRecord;
  /** The transfer's object as the content store holds it; undefined if it is missing. */
  readonly stored: StoredObject | undefined;
  /** The backups of the workspace, which is named by owner and meta id. */
  readonly backup: RecordEntry<BackupRecord> | undefined;
  readonly storeName: string;
  readonly generations: number;
  readonly nowMs: number;
  /** A number that grows with each change of the store, even after a restore from a backup. */
  readonly order: bigint;
}

/**
 * The number of finished transfers that a record keeps. Backups and snapshots keep what older ones
 * stored.
 */
const KEPT_TRANSFERS = 10;

/**
 * Returns the writes for a transfer whose archive a node reports as finished. They store the
 * archive as a backup or snapshot only if the content store holds it with the reported size and
 * digest. Otherwise a final transfer is removed from the record, and any other transfer fails.
 */
export function confirmTransfer(input: ConfirmInput): Confirmation {
  const { record, transfer, stored, storeName } = input;
  if (!isSame(transfer, stored)) return { record: withoutLost(record, transfer), writes: {} };
  const url = snapshotUrl(transfer.object, storeName);
  const finished = { ...transfer, url, finishedAt: toTimestamp(input.nowMs), message: "" };
  const changed = withFinished(record, finished);
  const isFinal = transfer.id.startsWith(FINAL_TRANSFER);
  const isSnapshot = transfer.kind === TransferKind.SNAPSHOT;
  const safe = isFinal ? { ...changed, contentSafe: true } : changed;
  const confirmed = withConditions(safe, {
    ...(isFinal && !isSnapshot && { finalBackupComplete: WorkspaceConditionBool.TRUE }),
    ...(isFinal && isSnapshot && isHeadless(record.type) && { snapshot: url }),
  });
  return { record: confirmed, writes: isSnapshot ? snapshotWrites(input, url) : pointerWrites(input) };
}

function isSame({ archive, object }: TransferRecord, stored: StoredObject | undefined): boolean {
  return (
    archive !== undefined &&
    stored !== undefined &&
    stored.object === object &&
    BigInt(stored.sizeBytes) === archive.sizeBytes &&
    stored.sha256 === archive.sha256
  );
}

/**
 * Removes a final transfer, so that the plan orders another one with a new id. Marks any other
 * transfer as failed.
 */
function withoutLost(record: InstanceRecord, transfer: TransferRecord): InstanceRecord {
  if (transfer.id.startsWith(FINAL_TRANSFER))
    return { ...record, transfers: record.transfers.filter(({ id }) => id !== transfer.id) };
  const message = `the content store does not hold ${transfer.object} as the node reported it`;
  const lost = { ...transfer, state: TransferState.FAILED, message };
  return { ...record, transfers: record.transfers.map((it) => (it.id === transfer.id ? lost : it)) };
}

function withFinished(record: InstanceRecord, finished: TransferRecord): InstanceRecord {
  const transfers = record.transfers.map((it) => (it.id === finished.id ? finished : it));
  const ended = transfers.filter(
    ({ finishedAt, state }) => finishedAt !== undefined || state === TransferState.FAILED,
  );
  const dropped = new Set(ended.slice(0, -KEPT_TRANSFERS));
  return { ...record, transfers: transfers.filter((it) => !dropped.has(it)) };
}

function snapshotWrites({ record, transfer, nowMs }: ConfirmInput, url: string): ExtraWrites {
  const snapshot = SnapshotRecord.fromPartial({
    archive: transfer.archive,
    instanceId: record.id,
    owner: record.metadata?.owner ?? "",
    at: toTimestamp(nowMs),
  });
  return { ops: [{ type: "put", key: snapshotKey(url), value: encodeRecord(SnapshotRecord, snapshot) }] };
}

function pointerWrites({ record, transfer, backup, generations, nowMs, order }: ConfirmInput): ExtraWrites {
  const { owner = "", metaId = "" } = record.metadata ?? {};
  const key = backupKey({ owner, metaId });
  const isLate = record.phase === WorkspacePhase.STOPPED;
  const saved = Generation.fromPartial({
    archive: transfer.archive,
    instanceId: record.id,
    kind: transfer.kind,
    at: isLate ? record.stoppedAt : toTimestamp(nowMs),
    // Content that is saved after the stop dates from the end of the pod, before any later instance
    // started.
    order: isLate ? record.podGoneVersion : order,
  });
  const older = (backup?.record.generations ?? []).filter(
    ({ archive }) => archive?.object !== transfer.object,
  );
  const sorted = isLate ? inOrder(saved, older, generations) : [saved, ...older];
  const pointer = BackupRecord.fromPartial({ owner, metaId, generations: sorted.slice(0, generations) });
  return {
    compares: [{ type: "mod-revision", key, revision: backup?.revision ?? 0 }],
    ops: [{ type: "put", key, value: encodeRecord(BackupRecord, pointer) }],
  };
}

/**
 * Inserts the generation by its order, newest first. Content saved long after its instance stopped
 * may be older than backups of later instances; it is kept, but not as the newest. Wall-clock times
 * are compared only if one of the generations has no order.
 */
function inOrder(saved: Generation, others: readonly Generation[], kept: number): Generation[] {
  const savedMs = toEpochMs(saved.at) ?? 0;
  const isNewer = ({ at, order, instanceId }: Generation): boolean => {
    if (instanceId === saved.instanceId) return false;
    return order > 0n && saved.order > 0n ? order > saved.order : (toEpochMs(at) ?? 0) > savedMs;
  };
  const newer = others.filter(isNewer).slice(0, kept - 1);
  return [...newer, saved, ...others.filter((it) => !isNewer(it))];
}
