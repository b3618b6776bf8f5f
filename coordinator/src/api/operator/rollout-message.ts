import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { rolloutAttemptAt } from "../../model/effective-workload.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/** Returns a message about a container service's rollout. Empty if the effective revision is the applied one. */
export function rolloutMessage(state: ClusterView, { record, applied }: ResourceEntry): string {
  const key = workloadStatusKey(record.namespace, record.kind, record.name);
  const status = state.workloadStatuses.get(key)?.record.status;
  if (status?.$case !== "containerService" || applied === undefined) return "";
  const attempt = rolloutAttemptAt(status.value, record, applied);
  const held = status.value.paused ? ["its rollouts are paused"] : [];
  const back = `revision ${attempt?.rolledBackTo}: ${attempt?.message}`;
  switch (attempt?.state) {
    case AttemptState.ROLLING_BACK:
      return [`rolling back to ${back}`, ...held].join("; ");
    case AttemptState.ROLLED_BACK:
      return [`rolled back to ${back}`, ...held].join("; ");
    case AttemptState.FAILED:
      return [`its rollout failed: ${attempt.message}`, ...held].join("; ");
    default:
      return held.join("");
  }
}
