import {
  type BackupWorkspaceRequest,
  type BackupWorkspaceResponse,
  type TakeSnapshotRequest,
  type TakeSnapshotResponse,
  WorkspacePhase,
} from "@forage/proto/core";
import type { InstanceRecord, TransferRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ContentStore } from "../content/content-store.ts";
import { snapshotUrl } from "../content/object-name.ts";
import { transferObject } from "../content-names.ts";
import { finalTransferOf, isOpen } from "../phase/content.ts";
import { withTransfer } from "../phase/plan.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { waitFor } from "./wait-for.ts";

export interface TransferCallOptions {
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly state: ClusterView;
  readonly content: ContentStore;
  readonly nowMs: () => number;
}

/**
 * The most open transfers of a workspace. Each occupies a slot for its whole duration, and more of
 * them at a time are not faster.
 */
export const MAX_OPEN_TRANSFERS = 5;

/**
 * Orders a snapshot of a running workspace, and returns its URL: at once, or when the snapshot is
 * complete. Throws NOT_FOUND, FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED, DATA_LOSS.
 */
export async function takeSnapshot(
  { id, returnImmediately }: TakeSnapshotRequest,
  signal: AbortSignal,
  options: TransferCallOptions,
): Promise<TakeSnapshotResponse> {
  const ordered = await order(id, TransferKind.SNAPSHOT, options, (record) => {
    const isRunning = record.phase === WorkspacePhase.RUNNING || record.phase === WorkspacePhase.INTERRUPTED;
    if (!isRunning || record.stop !== undefined)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `workspace ${id} is not running, so that no snapshot of it can be taken`,
      );
  });
  if (!returnImmediately) await completed(id, ordered.id, signal, options);
  return { url: snapshotUrl(ordered.object, options.content.name) };
}

/**
 * Backs up a workspace, and returns when the backup is complete. A workspace that is stopping
 * returns its final backup. Throws NOT_FOUND, FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED,
 * DATA_LOSS.
 */
export async function backupWorkspace(
  { id }: BackupWorkspaceRequest,
  signal: AbortSignal,
  options: TransferCallOptions,
): Promise<BackupWorkspaceResponse> {
  const entry = options.view.instance(id);
  if (entry?.record.stop !== undefined) return finalBackup(entry.record, signal, options);
  const ordered = await order(id, TransferKind.BACKUP, options, (record) => {
    if (record.contentStage !== ContentStage.READY || record.stop !== undefined)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `the content of workspace ${id} is not complete yet, so there is nothing to back up`,
      );
  });
  await completed(id, ordered.id, signal, options);
  return { url: snapshotUrl(ordered.object, options.content.name) };
}

async function finalBackup(
  record: InstanceRecord,
  signal: AbortSignal,
  options: TransferCallOptions,
): Promise<BackupWorkspaceResponse> {
  const nothing = (it: InstanceRecord): CoordinatorError =>
    new CoordinatorError("FAILED_PRECONDITION", `workspace ${it.id} stopped without content to back up`);
  if (!record.contentEverReady) throw nothing(record);
  assertReachable(record, options.state);
  const url = await waitFor(options.view, record.id, signal, (it) => {
    const final = finalTransferOf(it);
    if (final?.finishedAt !== undefined) return final.url;
    if (final?.state === TransferState.FAILED) throw lost(it.id, final.message);
    if (it.nodeLost) throw lost(it.id, it.message);
    if (it.phase === WorkspacePhase.STOPPED) throw nothing(it);
    return undefined;
  });
  return { url };
}

/** Stores the order of one more transfer, unless `check` throws. */
async function order(
  id: string,
  kind: TransferKind,
  { writer, state, nowMs }: TransferCallOptions,
  check: (record: InstanceRecord) => void,
): Promise<TransferRecord> {
  let transferId = "";
  const prefix = kind === TransferKind.SNAPSHOT ? "snapshot" : "backup";
  const record = await writer.update(id, (before) => {
    check(before);
    assertReachable(before, state);
    if (before.transfers.filter(isOpen).length >= MAX_OPEN_TRANSFERS)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `workspace ${id} has ${MAX_OPEN_TRANSFERS} backups and snapshots in progress: wait until one of them is complete`,
      );
    const after = withTransfer(before, kind, { prefix, nowMs: nowMs(), nameOf: transferObject });
    transferId = after.transfers.at(-1)?.id ?? "";
    return after;
  });
  const ordered = record.transfers.find((transfer) => transfer.id === transferId);
  if (ordered === undefined)
    throw new CoordinatorError("ABORTED", `workspace ${id} changed meanwhile; try again`);
  return ordered;
}

function completed(
  id: string,
  transferId: string,
  signal: AbortSignal,
  { view }: TransferCallOptions,
): Promise<TransferRecord> {
  return waitFor(view, id, signal, (record) => {
    const transfer = record.transfers.find((it) => it.id === transferId);
    if (transfer === undefined) throw lost(id, "it was replaced");
    if (transfer.state === TransferState.FAILED) throw lost(id, transfer.message);
    if (record.nodeLost || record.phase === WorkspacePhase.STOPPED)
      throw lost(id, "the workspace has stopped");
    return transfer.finishedAt === undefined ? undefined : transfer;
  });
}

function assertReachable({ id, node }: InstanceRecord, state: ClusterView): void {
  const health = state.node(node)?.health;
  if (node !== "" && health?.ready !== true)
    throw new CoordinatorError(
      "UNAVAILABLE",
      `node ${node} of workspace ${id} is unavailable: ${health?.message ?? "it was removed"}`,
    );
}

function lost(id: string, why: string): CoordinatorError {
  return new CoordinatorError("DATA_LOSS", `the content of workspace ${id} was not saved: ${why}`);
}
