import { isDeepStrictEqual } from "node:util";
import { WorkspaceConditionBool, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import type { BackupRecord, InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { statusOf } from "../../../src/workspaces/phase/status.ts";
import type { ContentVersion, SimulatedStore } from "./simulated-store.ts";

/*
 * The order of phases. The rules in this file hold after every event, regardless of how decisions
 * are made.
 */

const ORDER: readonly WorkspacePhase[] = [
  WorkspacePhase.PENDING,
  WorkspacePhase.CREATING,
  WorkspacePhase.INITIALIZING,
  WorkspacePhase.RUNNING,
  WorkspacePhase.STOPPING,
  WorkspacePhase.STOPPED,
];

export function broken(rule: string): never {
  throw new Error(rule);
}

/** Checks a stored change of the record. */
export function checkChange(before: InstanceRecord, after: InstanceRecord): void {
  if (rankOf(after.phase) < rankOf(before.phase))
    broken(`the phase went back from ${before.phase} to ${after.phase}`);
  const [old, now] = [published(before), published(after)];
  if (isDeepStrictEqual(old, now) !== (before.statusVersion === after.statusVersion))
    broken("the status version does not grow with each change of the status, and only then");
  if (after.statusVersion < before.statusVersion) broken("the status version went back");
  for (const [name, value] of Object.entries(settledOf(before)))
    if (!isDeepStrictEqual(value, settledOf(after)[name])) broken(`${name} changed after it was set`);
  const hasOutcome =
    before.contentStage === ContentStage.READY || before.contentStage === ContentStage.FAILED;
  const isSame = after.contentStage === before.contentStage || after.contentStage === ContentStage.DISPOSED;
  if (hasOutcome && !isSame) broken("the outcome of the initialization changed");
  checkTransfers(before, after);
}

/**
 * Returns the rank of a phase. A workspace whose node is away is interrupted, and runs again when
 * the node returns.
 */
function rankOf(phase: WorkspacePhase): number {
  return ORDER.indexOf(phase === WorkspacePhase.INTERRUPTED ? WorkspacePhase.RUNNING : phase);
}

/** Checks that an ended transfer does not change, except that a lost archive makes it fail. */
function checkTransfers(before: InstanceRecord, after: InstanceRecord): void {
  for (const transfer of before.transfers) {
    const now = after.transfers.find(({ id }) => id === transfer.id);
    if (now === undefined) continue;
    const hasEnded = transfer.finishedAt !== undefined || transfer.state === TransferState.FAILED;
    if (hasEnded && !isDeepStrictEqual(now, transfer))
      broken(`transfer ${transfer.id} changed after its end`);
    if (transfer.state !== TransferState.DONE) continue;
    if (now.state !== TransferState.DONE && now.state !== TransferState.FAILED)
      broken(`transfer ${transfer.id} is not done any more`);
    if (now.state === TransferState.DONE && !isDeepStrictEqual(now.archive, transfer.archive))
      broken(`transfer ${transfer.id} has another archive after it was done`);
  }
  const numbers = after.transfers.map(({ id }) => id);
  if (new Set(numbers).size !== numbers.length) broken("two transfers have the same id");
}

function published(record: InstanceRecord): unknown {
  return { ...statusOf(record, "", ""), statusVersion: 0n };
}

/** Returns the values that never change once they are set. */
function settledOf(record: InstanceRecord): Record<string, unknown> {
  const { conditions } = record;
  const settled: Record<string, unknown> = {
    failed: conditions?.failed,
    timeout: conditions?.timeout,
    headlessTaskFailed: conditions?.headlessTaskFailed,
    snapshot: conditions?.snapshot,
    finalBackupComplete: conditions?.finalBackupComplete,
    stoppedByRequest: conditions?.stoppedByRequest,
    stop: record.stop,
    node: record.node,
    podUid: record.podUid,
    podCreated: record.podCreated,
    podGone: record.podGone,
    contentEverReady: record.contentEverReady,
    contentSafe: record.contentSafe,
    contentKept: record.contentKept,
    contentLost: record.contentLost,
    nodeLost: record.nodeLost,
    runningSince: record.runningSince,
    stoppingSince: record.stoppingSince,
    stoppedAt: record.stoppedAt,
  };
  return Object.fromEntries(Object.entries(settled).filter(([, value]) => Boolean(value)));
}

/** Checks the record of the backups. */
export function checkPointer(
  backup: BackupRecord | undefined,
  store: SimulatedStore,
  generations: number,
): void {
  const kept = backup?.generations ?? [];
  if (kept.length > generations) broken(`${kept.length} generations are kept`);
  let newer: { readonly changes: number; readonly disk: number } | undefined;
  for (const { archive } of kept) {
    const stored = store.stat(archive?.object ?? "");
    if (
      stored === undefined ||
      BigInt(stored.sizeBytes) !== archive?.sizeBytes ||
      stored.sha256 !== archive.sha256
    )
      broken("a generation is not in the store as it is recorded");
    const version = store.versionOf(stored.object);
    if (newer !== undefined && version !== undefined && version.changes > newer.changes)
      broken("an older generation holds newer content");
    newer = version;
  }
}

/** The state of the simulated world besides the record. */
export interface LifeFacts {
  readonly podEnded: boolean;
  readonly nodeRemoved: boolean;
  readonly backup: BackupRecord | undefined;
}

export function checkRecord(record: InstanceRecord, { podEnded, nodeRemoved, backup }: LifeFacts): void {
  const { conditions, phase, type } = record;
  const complete = conditions?.finalBackupComplete === WorkspaceConditionBool.TRUE;
  if (complete && (backup?.generations.length ?? 0) === 0)
    broken("a final backup is complete that no pointer names");
  if (complete && type !== WorkspaceType.REGULAR) broken("a headless workspace has a final backup");
  if (complete && (record.contentKept || record.contentLost))
    broken("a final backup is complete of content that was kept or lost");
  if (type !== WorkspaceType.REGULAR && /^container workspace/.test(conditions?.failed ?? ""))
    broken("the end of a task is a failure of its headless workspace");
  if ((conditions?.snapshot ?? "") !== "" && type === WorkspaceType.REGULAR)
    broken("a regular workspace has the condition snapshot");
  if (record.stop === undefined && ORDER.indexOf(phase) >= ORDER.indexOf(WorkspacePhase.STOPPING))
    broken("it stops without a cause");
  if (phase !== WorkspacePhase.STOPPED) return;
  if (!podEnded) broken("STOPPED with a pod");
  if (record.stoppedAt === undefined) broken("STOPPED without its time");
  if (!record.contentEverReady || type === WorkspaceType.IMAGEBUILD || record.contentSafe) return;
  if (!nodeRemoved && !record.contentKept && !record.contentLost) broken("STOPPED without a backup");
  if (conditions?.failed === "") broken("content was lost without a failure");
}

/** The content that a node deletes, and the versions of it that the store has. */
export interface DeletedContent {
  readonly version: ContentVersion;
  /** The disk whose content was lost first. Undefined: none was lost. */
  readonly lostAtDisk: number | undefined;
  readonly stored: readonly ContentVersion[];
  /** The version of the newest backup. Undefined: there is none. */
  readonly newest: ContentVersion | undefined;
}

/**
 * Checks that content is deleted only after its newest version is in the store as a backup or a
 * snapshot.
 */
export function checkDeletion(record: InstanceRecord, content: DeletedContent): void {
  const { type, stop, contentKept } = record;
  if (stop === undefined) broken("the node deletes the content of a workspace that is not stopped");
  if (contentKept) broken("the node deletes content that is kept because it could not be saved");
  const { changes, disk } = content.version;
  // No container changed it, so it contains nothing new.
  if (changes === 0 || type === WorkspaceType.IMAGEBUILD) return;
  if (content.lostAtDisk !== undefined && disk >= content.lostAtDisk) return;
  const isIt = (version: ContentVersion | undefined): boolean =>
    version?.changes === changes && version.disk === disk;
  if (!content.stored.some(isIt)) broken("the node deletes content that was not saved");
  if (type === WorkspaceType.REGULAR && !isIt(content.newest))
    broken("the node deletes content that the newest generation does not hold");
}
