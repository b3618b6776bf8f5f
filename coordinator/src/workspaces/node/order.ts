import { WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord, InstanceSecrets } from "@forage/proto/forage/workspaces/v1/records";
import { WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { isOpen, mayDispose } from "../phase/content.ts";
import { classOf, type WorkspaceSettings } from "../settings.ts";

const GIGABYTE = 1024n ** 3n;

/** Pure: what the node of the instance has to do with its content. `version` is left at 0. */
export function orderOf(
  record: InstanceRecord,
  secrets: InstanceSecrets | undefined,
  settings: WorkspaceSettings,
): WorkspaceOrder {
  const { id, podUid, metadata, restore, archives, transfers, spec } = record;
  const createdMs = toEpochMs(record.createdAt) ?? 0;
  const dispose = mayDispose(record);
  const disk = classOf(settings, spec?.class ?? "")?.diskGigabytes ?? 0;
  return WorkspaceOrder.fromPartial({
    instanceId: id,
    podUid,
    owner: metadata?.owner ?? "",
    metaId: metadata?.metaId ?? "",
    // A node that deletes the content needs no credentials. Until then it may have to fill the content, as it was ordered first.
    ...(!dispose && { initializer: secrets?.initializer, restore, archives }),
    quotaBytes: (BigInt(Math.round(disk * 1000)) * GIGABYTE) / 1000n,
    transfers: transfers
      .filter(isOpen)
      .map(({ id: transferId, kind, object }) => ({ id: transferId, kind, object })),
    dispose,
    podGone: record.podGone,
    initializeDeadline: toTimestamp(createdMs + settings.timeouts.startupSeconds * 1000),
    readGitStatus: record.type === WorkspaceType.REGULAR,
  });
}
