import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { objectKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { activityKey, instanceKey, liveKey, secretsKey } from "./keys.ts";
import { secretNameOf } from "./pod/environment-secret.ts";
import type { WorkspaceView } from "./view.ts";
import type { Writes } from "./writer.ts";

/** Lets another instance of the meta id start. */
export function releaseWrites(record: InstanceRecord, view: WorkspaceView): Writes {
  const metaId = record.metadata?.metaId ?? "";
  const live = view.live(metaId);
  if (live === undefined || live.record.instanceId !== record.id) return {};
  return {
    compares: [{ kind: "modRevision", key: live.key, revision: live.revision }],
    ops: [{ kind: "delete", key: liveKey(metaId) }],
  };
}

/** Removes an instance that has stopped, with all that belongs to it alone. Backups and snapshots stay. */
export function removalWrites(record: InstanceRecord, { state }: { readonly state: ClusterView }): Writes {
  const { id } = record;
  const secret = secretNameOf(record);
  const hasSecret = state.objects.get(secret) !== undefined;
  return {
    ops: [
      { kind: "delete", key: instanceKey(id) },
      { kind: "delete", key: secretsKey(id) },
      { kind: "delete", key: activityKey(id) },
      ...(hasSecret ? [{ kind: "delete", key: objectKey(secret) } as const] : []),
    ],
  };
}
