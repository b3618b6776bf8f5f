import type { InstanceRecord, TransferRecord } from "@forage/proto/forage/workspaces/v1/records";
import {
  ContentStage,
  type TransferReport,
  TransferState,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { isOpen, mayDispose } from "../phase/content.ts";

/** The length limit of texts from agents, which are stored with each status. */
const MAX_TEXT_LENGTH = 1_000;
/** The most entries of each list in a Git status. The totals still count all entries. */
const MAX_GIT_ENTRIES = 100;

/** The order of content stages. A report never moves the record to an earlier stage. */
const STAGE_RANK: Readonly<Record<number, number>> = {
  [ContentStage.UNSPECIFIED]: 0,
  [ContentStage.INITIALIZING]: 1,
  [ContentStage.READY]: 2,
  [ContentStage.FAILED]: 2,
  [ContentStage.DISPOSED]: 3,
};

/**
 * Content counts as near its limit from the first percentage on, until it falls below the second.
 * The gap avoids frequent changes.
 */
const NEAR_LIMIT_PERCENT = { from: 95n, until: 90n };

/**
 * Returns the record with a node's report applied, or the same object if nothing changes.
 * `quotaBytes` is the size limit of the content; 0 means none.
 */
export function applyReport(
  record: InstanceRecord,
  report: WorkspaceReport,
  quotaBytes: bigint,
): InstanceRecord {
  const staged = withAcknowledgement(withStage(record, report), report);
  const transfers = withTransfers(withDiskUse(staged, report, quotaBytes), report.transfers);
  const repo =
    report.gitStatus === undefined || staged.repo !== undefined
      ? staged.repo
      : boundedGitStatus(report.gitStatus);
  return repo === transfers.repo ? transfers : { ...transfers, repo };
}

function withStage(record: InstanceRecord, { stage, message, source }: WorkspaceReport): InstanceRecord {
  const [before, after] = [STAGE_RANK[record.contentStage] ?? 0, STAGE_RANK[stage] ?? 0];
  // The node has lost the content. A backup of a new, empty one would displace good backups.
  const isLost = stage === ContentStage.INITIALIZING || stage === ContentStage.DISPOSED;
  if (isLost && record.contentEverReady && !record.contentLost && mustHaveContent(record))
    return { ...record, contentLost: true };
  if (after < before || after === 0) return record;
  // If ready content fails later, its container fails too, which is reported separately.
  if (after === before && stage !== record.contentStage) return record;
  // Only an order deletes content, and the order is given only once the content is saved.
  if (stage === ContentStage.DISPOSED && record.stop === undefined) return record;
  const contentMessage = message.slice(0, MAX_TEXT_LENGTH);
  // Content that became complete only after the pod's end was never changed by the workspace.
  const isUsed = stage === ContentStage.READY && !record.podGoneAcknowledged;
  const contentEverReady = record.contentEverReady || isUsed;
  const contentSource = source === 0 ? record.contentSource : source;
  if (
    stage === record.contentStage &&
    contentMessage === record.contentMessage &&
    contentSource === record.contentSource &&
    contentEverReady === record.contentEverReady
  )
    return record;
  return { ...record, contentStage: stage, contentMessage, contentSource, contentEverReady };
}

/** Stores only that content reaches or leaves its limit: the exact amount changes too often. */
function withDiskUse(
  record: InstanceRecord,
  { usedBytes }: WorkspaceReport,
  quotaBytes: bigint,
): InstanceRecord {
  if (usedBytes === 0n) return record;
  const isNear = record.contentNearLimitBytes > 0n;
  const percent = isNear ? NEAR_LIMIT_PERCENT.until : NEAR_LIMIT_PERCENT.from;
  const contentNearLimitBytes = usedBytes * 100n >= quotaBytes * percent ? quotaBytes : 0n;
  return contentNearLimitBytes === record.contentNearLimitBytes
    ? record
    : { ...record, contentNearLimitBytes };
}

/**
 * The pod's status and the content's report arrive on different streams. This report was made after
 * the pod's end.
 */
function withAcknowledgement(record: InstanceRecord, { orderVersion }: WorkspaceReport): InstanceRecord {
  if (record.podGoneAcknowledged || record.podGoneVersion === 0n || orderVersion < record.podGoneVersion)
    return record;
  return { ...record, podGoneAcknowledged: true };
}

/** Reports whether the node should have the content: it has no order to delete it. */
function mustHaveContent(record: InstanceRecord): boolean {
  return record.contentStage === ContentStage.READY && !mayDispose(record);
}

function withTransfers(record: InstanceRecord, reports: readonly TransferReport[]): InstanceRecord {
  let changed = false;
  const transfers = record.transfers.map((transfer) => {
    const report = reports.find(({ id }) => id === transfer.id);
    const after = report === undefined ? transfer : withTransfer(transfer, report);
    changed ||= after !== transfer;
    return after;
  });
  return changed ? { ...record, transfers } : record;
}

/**
 * Applies a report to a transfer. A transfer that has ended does not change. Bytes and attempts
 * change too often to be stored.
 */
function withTransfer(transfer: TransferRecord, report: TransferReport): TransferRecord {
  if (!isOpen(transfer) || transfer.state === TransferState.DONE) return transfer;
  const message = report.message.slice(0, MAX_TEXT_LENGTH);
  if (report.state === transfer.state && message === transfer.message) return transfer;
  // A finished transfer without an archive can't be confirmed.
  if (report.state === TransferState.DONE && report.archive === undefined) return transfer;
  return { ...transfer, state: report.state, message, archive: report.archive, tries: report.tries };
}

function boundedGitStatus(
  status: NonNullable<WorkspaceReport["gitStatus"]>,
): NonNullable<WorkspaceReport["gitStatus"]> {
  const bounded = (entries: readonly string[]): string[] =>
    entries.slice(0, MAX_GIT_ENTRIES).map((entry) => entry.slice(0, MAX_TEXT_LENGTH));
  return {
    ...status,
    branch: status.branch.slice(0, MAX_TEXT_LENGTH),
    latestCommit: status.latestCommit.slice(0, MAX_TEXT_LENGTH),
    uncommitedFiles: bounded(status.uncommitedFiles),
    untrackedFiles: bounded(status.untrackedFiles),
    unpushedCommits: bounded(status.unpushedCommits),
  };
}
