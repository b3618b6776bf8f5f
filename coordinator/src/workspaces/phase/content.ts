import { WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord, TransferRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";

/** The kind of archive that the end of an instance makes; undefined: none. */
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

/** Id of the transfer that saves the content at the end. It starts with this, because a lost archive is made again. */
export const FINAL_TRANSFER = "final";

export function finalTransferOf({ transfers }: InstanceRecord): TransferRecord | undefined {
  return transfers.findLast(({ id }) => id.startsWith(FINAL_TRANSFER));
}

/** Reports whether a container may still run. */
export function hasPod({ podCreated, podGone }: InstanceRecord): boolean {
  return podCreated && !podGone;
}

/** Reports whether the end of the instance has to save the content first. Snapshots whose URL a client has count, too. */
export function needsSaving(record: InstanceRecord): boolean {
  if (!record.contentEverReady || record.contentKept || record.nodeLost || record.contentLost) return false;
  const isOrdered = (it: TransferRecord): boolean => isOpen(it) && it.kind !== TransferKind.EXPORT;
  return (finalKindOf(record.type) !== undefined && !record.contentSafe) || record.transfers.some(isOrdered);
}

/** Reports whether unsaved content stays on a node of the cluster until somebody decides about it. */
export function isKept({ contentKept, contentDiscarded, nodeLost }: InstanceRecord): boolean {
  return contentKept && !contentDiscarded && !nodeLost;
}

/**
 * Reports whether the node may delete the content: its pod has ended, and the content is saved or no container ever had it. The
 * latter is known once the node has reported after the end of the pod.
 */
export function mayDispose(record: InstanceRecord): boolean {
  const { stop, nodeLost, contentEverReady, contentStage, podCreated, podGoneAcknowledged } = record;
  if (stop === undefined || hasPod(record) || needsSaving(record) || isKept(record) || nodeLost) return false;
  return contentEverReady || contentStage === ContentStage.FAILED || !podCreated || podGoneAcknowledged;
}

/** Reports whether nothing of the content is left on a node of the cluster, or it is meant to stay there. */
export function isDisposed(record: InstanceRecord): boolean {
  return (
    record.node === "" || record.nodeLost || isKept(record) || record.contentStage === ContentStage.DISPOSED
  );
}

export function isOpen({ state, finishedAt }: TransferRecord): boolean {
  return finishedAt === undefined && state !== TransferState.FAILED;
}
