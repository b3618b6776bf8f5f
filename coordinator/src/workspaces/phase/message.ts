import { WorkspacePhase } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toEpochMs } from "../../model/timestamp.ts";
import { GENERATION_ANNOTATION } from "../start/restore.ts";
import { finalTransferOf, hasPod, needsSaving } from "./content.ts";
import type { Observation } from "./observation.ts";

/** The length limit of messages, which are stored with each status. */
const MAX_MESSAGE_LENGTH = 1_000;
const GIBIBYTE = 1024n ** 3n;

/**
 * Describes the instance's progress. The message contains no elapsed times, so that it changes only
 * with events.
 */
export function messageOf(record: InstanceRecord, observation: Observation): string {
  return textOf(record, observation).slice(0, MAX_MESSAGE_LENGTH);
}

function textOf(record: InstanceRecord, observation: Observation): string {
  const { conditions, phase } = record;
  switch (phase) {
    case WorkspacePhase.STOPPED:
      return stoppedText(record);
    case WorkspacePhase.STOPPING:
      return stoppingText(record, observation);
    case WorkspacePhase.RUNNING:
    case WorkspacePhase.INTERRUPTED:
      return nodeText(record, observation) ?? limitText(record) ?? record.restoredFrom;
    case WorkspacePhase.PENDING:
      return observation.unschedulable === ""
        ? "waits for a node"
        : `waits for a node: ${observation.unschedulable}`;
    default:
      return conditions?.failed || (nodeText(record, observation) ?? startText(record, observation));
  }
}

function stoppedText(record: InstanceRecord): string {
  if (record.nodeLost && record.contentEverReady && !record.contentSafe)
    return `the content was lost with node ${record.node}; ${lastBackupText(record)}`;
  if (record.contentDiscarded) return "the content was discarded on request";
  if (record.contentKept)
    return `the content was not saved and stays on node ${record.node}: see \`forage workspace content ls\``;
  return "";
}

function stoppingText(record: InstanceRecord, observation: Observation): string {
  const away = nodeText(record, observation);
  if (away !== undefined) return away;
  if (hasPod(record)) return "stops the container";
  if (!needsSaving(record)) return "deletes the content on its node";
  const final = finalTransferOf(record);
  if (final?.state === TransferState.RETRYING)
    return `saves the content; the last try failed: ${final.message}`;
  return "saves the content";
}

/**
 * Returns a warning before programs in the workspace fail for lack of space, or before the disk of
 * a node without enforced limits is full.
 */
function limitText({ contentNearLimitBytes }: InstanceRecord): string | undefined {
  if (contentNearLimitBytes === 0n) return undefined;
  const gibibytes = Number((contentNearLimitBytes * 100n) / GIBIBYTE) / 100;
  return `the content takes nearly all of its limit of ${gibibytes} GiB, or more: delete files, or start it with a larger class`;
}

function startText(
  { contentStage, contentMessage, restoredFrom }: InstanceRecord,
  { pod }: Observation,
): string {
  const waiting = pod?.status?.containers.flatMap(({ state }) =>
    state?.$case === "waiting" && state.value.message !== ""
      ? [`${state.value.reason}: ${state.value.message}`]
      : [],
  )[0];
  if (contentStage === ContentStage.INITIALIZING)
    return contentMessage === "" ? "prepares the content" : contentMessage;
  return waiting ?? (contentStage === ContentStage.READY ? restoredFrom : "creates the container");
}

function nodeText(record: InstanceRecord, { node }: Observation): string | undefined {
  if (record.node === "" || node === undefined || node.ready) return undefined;
  const unsaved = record.contentEverReady && !record.contentSafe ? `; ${lastBackupText(record)}` : "";
  return `node ${record.node} is unavailable: ${node.message}${unsaved}`;
}

/** Describes the backup that a new start restores if the node does not come back. */
export function lastBackupText({ transfers, restore }: InstanceRecord): string {
  const saved = transfers.findLast(
    ({ archive, finishedAt, kind }) =>
      archive !== undefined && finishedAt !== undefined && kind !== TransferKind.SNAPSHOT,
  );
  const atMs = toEpochMs(saved?.finishedAt ?? restore?.createdAt);
  return atMs === undefined
    ? "there is no backup of it"
    : `the last backup is of ${new Date(atMs).toISOString()}`;
}

/**
 * Describes how to start from an older backup after a backup could not be restored. Empty if the
 * start restored none.
 */
export function olderBackupText({ restore }: InstanceRecord): string {
  return restore === undefined
    ? ""
    : `; to restore an older backup, start it with the annotation ${GENERATION_ANNOTATION}`;
}

/**
 * Returns what the content waited for when the start timed out, for example a server that did not
 * answer. Empty if the content was complete.
 */
export function unfinishedContentText({ contentStage, contentMessage }: InstanceRecord): string {
  const isUnfinished = contentStage === ContentStage.INITIALIZING && contentMessage !== "";
  return isUnfinished ? `; the content is not complete: ${contentMessage}` : "";
}
