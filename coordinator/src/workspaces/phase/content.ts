import { WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord, TransferRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";

/** Returns the kind of archive that is made when the instance ends; undefined if none is. */
export function finalKindOf(type: WorkspaceType): TransferKind | undefined {
  switch (type) {
    case WorkspaceType.REGULAR:
      return TransferKind.FINAL_BACKUP;
    case WorkspaceType.PREBUILD:
    case WorkspaceType.PROBE:
      return TransferKind.SNAPSHOT;
    default:
      return undefined;
  }
}

/**
 * The id of the transfer that saves the content at the end. If its archive is lost, the id of the
 * next one has this prefix.
 */
export const FINAL_TRANSFER = "final";

export function finalTransferOf({ transfers }: InstanceRecord): TransferRecord | undefined {
  return transfers.findLast(({ id }) => id.startsWith(FINAL_TRANSFER));
}

/** Reports whether a container of the instance may still run. */
export function hasPod({ podCreated, podGone }: InstanceRecord): boolean {
  return podCreated && !podGone;
}

/**
 * Reports whether the content must be saved before the instance ends. A pending snapshot whose URL
 * was returned to a client must be saved as well.
 */
export function needsSaving(record: InstanceRecord): boolean {
  if (!record.contentEverReady || record.contentKept || record.nodeLost || record.contentLost) return false;
  const isOrdered = (it: TransferRecord): boolean => isOpen(it) && it.kind !== TransferKind.EXPORT;
  return (finalKindOf(record.type) !== undefined && !record.contentSafe) || record.transfers.some(isOrdered);
}

/**
 * Reports whether unsaved content stays on a node of the cluster until an operator decides about
 * it.
 */
export function isKept({ contentKept, contentDiscarded, nodeLost }: InstanceRecord): boolean {
  return contentKept && !contentDiscarded && !nodeLost;
}

/**
 * Reports whether the node may delete the content: the pod has ended, and the content is saved or
 * was never used by a container. The latter is certain only after the node has reported after the
 * pod's end.
 */
export function mayDispose(record: InstanceRecord): boolean {
  const { stop, nodeLost, contentEverReady, contentStage, podCreated, podGoneAcknowledged } = record;
  if (stop === undefined || hasPod(record) || needsSaving(record) || isKept(record) || nodeLost) return false;
  return contentEverReady || contentStage === ContentStage.FAILED || !podCreated || podGoneAcknowledged;
}

/** Reports whether no node of the cluster has the content, or whether it stays there on purpose. */
export function isDisposed(record: InstanceRecord): boolean {
  return (
    record.node === "" || record.nodeLost || isKept(record) || record.contentStage === ContentStage.DISPOSED
  );
}

export function isOpen({ state, finishedAt }: TransferRecord): boolean {
  return finishedAt === undefined && state !== TransferState.FAILED;
}
