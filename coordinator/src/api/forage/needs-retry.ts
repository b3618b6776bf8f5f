import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { rolloutAttemptAt } from "../../model/effective-workload.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/**
 * Reports whether applying the same content again begins a new rollout: because the last one failed, or because an undo has
 * pinned older versions of objects.
 */
export function needsRetry(state: ClusterView, { record, applied }: ResourceEntry): boolean {
  if (Object.keys(record.pinnedVersions).length > 0) return true;
  const key = workloadStatusKey(record.namespace, record.kind, record.name);
  const status = state.workloadStatuses.get(key)?.record.status;
  if (status?.$case !== "containerService" || applied === undefined) return false;
  const attempt = rolloutAttemptAt(status.value, record, applied);
  const { ROLLING_BACK, ROLLED_BACK, FAILED } = AttemptState;
  return [ROLLING_BACK, ROLLED_BACK, FAILED].some((state) => state === attempt?.state);
}
