import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { objectKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { activityKey, instanceKey, liveKey, secretsKey } from "./keys.ts";
import { secretNameOf } from "./pod/environment-secret.ts";
import type { WorkspaceView } from "./view.ts";
import type { ExtraWrites } from "./writer.ts";

/**
 * Returns the writes that allow another instance of the meta id to start. Empty if another instance
 * already has it.
 */
export function releaseWrites(record: InstanceRecord, view: WorkspaceView): ExtraWrites {
  const metaId = record.metadata?.metaId ?? "";
  const live = view.live(metaId);
  if (live === undefined || live.record.instanceId !== record.id) return {};
  return {
    compares: [{ type: "mod-revision", key: live.key, revision: live.revision }],
    ops: [{ type: "delete", key: liveKey(metaId) }],
  };
}

/**
 * Returns the writes that remove a stopped instance and everything that belongs to it alone.
 * Backups and snapshots stay.
 */
export function removalWrites(
  record: InstanceRecord,
  { state }: { readonly state: ClusterView },
): ExtraWrites {
  const { id } = record;
  const secret = secretNameOf(record);
  const hasSecret = state.objects.get(secret) !== undefined;
  return {
    ops: [
      { type: "delete", key: instanceKey(id) },
      { type: "delete", key: secretsKey(id) },
      { type: "delete", key: activityKey(id) },
      ...(hasSecret ? [{ type: "delete", key: objectKey(secret) } as const] : []),
    ],
  };
}
