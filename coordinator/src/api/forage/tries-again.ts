import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { attemptAt } from "../../model/in-force.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";

/** Whether the same content, applied again, begins a new rollout: what it asks for has failed, or an undo took older contents of objects. */
export function triesAgain(state: State, { record, wanted }: ResourceEntry): boolean {
  if (Object.keys(record.pinnedVersions).length > 0) return true;
  const key = workloadStatusKey(record.namespace, record.kind, record.name);
  const status = state.workloadStatuses.get(key)?.record.status;
  if (status?.$case !== "containerService" || wanted === undefined) return false;
  const attempt = attemptAt(status.value, record, wanted);
  const { ROLLING_BACK, ROLLED_BACK, FAILED } = AttemptState;
  return [ROLLING_BACK, ROLLED_BACK, FAILED].some((state) => state === attempt?.state);
}
