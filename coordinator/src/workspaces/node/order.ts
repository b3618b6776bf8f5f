import { WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord, InstanceSecrets } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferState, WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import { isOpen, mayDispose } from "../phase/content.ts";
import { diskBytesOf, type WorkspaceSettings } from "../settings.ts";

/** Returns the order for the node that holds the instance's content. `version` is 0. */
export function orderOf(
  record: InstanceRecord,
  secrets: InstanceSecrets | undefined,
  settings: WorkspaceSettings,
): WorkspaceOrder {
  const { id, podUid, metadata, restore, archives, transfers } = record;
  const dispose = mayDispose(record);
  return WorkspaceOrder.fromPartial({
    instanceId: id,
    podUid,
    owner: metadata?.owner ?? "",
    metaId: metadata?.metaId ?? "",
    // A node that deletes the content needs no credentials. Any other order repeats how the content
    // is filled, as the first one did.
    ...(!dispose && { initializer: secrets?.initializer, restore, archives }),
    quotaBytes: quotaBytesOf(record, settings),
    transfers: transfers
      // Once a node reports an archive, the order must not make it store another one: a backup may
      // refer to it at any moment.
      .filter((transfer) => isOpen(transfer) && transfer.state !== TransferState.DONE)
      .map(({ id: transferId, kind, object }) => ({ id: transferId, kind, object })),
    dispose,
    podGone: record.podGone,
    contentComplete: record.contentStage === ContentStage.READY,
    readGitStatus: record.type === WorkspaceType.REGULAR,
  });
}

/**
 * Returns the size limit of the instance's content; 0 means none. Existing content keeps its limit
 * when its class changes.
 */
export function quotaBytesOf({ quotaBytes, spec }: InstanceRecord, settings: WorkspaceSettings): bigint {
  return quotaBytes ?? diskBytesOf(settings, spec?.class ?? "");
}
