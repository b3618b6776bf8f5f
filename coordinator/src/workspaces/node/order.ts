import { WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord, InstanceSecrets } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferState, WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import { isOpen, mayDispose } from "../phase/content.ts";
import { diskBytesOf, type WorkspaceSettings } from "../settings.ts";

/** Returns what the instance's node has to do with its content. Pure. `version` is left at 0. */
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
    // A node that deletes the content needs no credentials. Until then it may have to fill the content, as it was ordered first.
    ...(!dispose && { initializer: secrets?.initializer, restore, archives }),
    quotaBytes: quotaBytesOf(record, settings),
    transfers: transfers
      // A reported archive is never replaced: the pointer to the newest backup may name it at any moment.
      .filter((transfer) => isOpen(transfer) && transfer.state !== TransferState.DONE)
      .map(({ id: transferId, kind, object }) => ({ id: transferId, kind, object })),
    dispose,
    podGone: record.podGone,
    contentComplete: record.contentStage === ContentStage.READY,
    readGitStatus: record.type === WorkspaceType.REGULAR,
  });
}

/** Returns the size limit of the instance's content. 0: no limit. Content that exists keeps its limit when its class changes. */
export function quotaBytesOf({ quotaBytes, spec }: InstanceRecord, settings: WorkspaceSettings): bigint {
  return quotaBytes ?? diskBytesOf(settings, spec?.class ?? "");
}
